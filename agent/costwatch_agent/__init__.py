"""The node agent: reads the GPUs' energy, keeps it on disk, sends it; imports no room."""

from typing import Final

VERSION: Final = "1.0.0"
