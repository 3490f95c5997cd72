"""A folder for what the server will never take and what the disk damaged, within a bound."""

from pathlib import Path
from typing import Final

from costwatch_agent.files import replace_file

MAX_BYTES: Final = 64 << 20


class SetAside:
    """The folder; the oldest files leave when it is full."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, name: str, data: bytes) -> None:
        """Store a file durably."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        replace_file(self._folder / name, data, durable=True)
        kept = sorted(self._folder.iterdir(), key=lambda path: path.stat().st_mtime)
        excess = sum(path.stat().st_size for path in kept) - MAX_BYTES
        for path in kept:
            if excess <= 0:
                return
            excess -= path.stat().st_size
            path.unlink()
