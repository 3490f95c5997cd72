"""Files that prove contracts and certificates: given back as they came. Kept by `instruments`."""

import io

from carbon.instruments import SHELF
from lake import blobs
from lake.places import LakeError, scratch


def open_evidence(sha256: str) -> io.BytesIO | None:
    """The bytes with this hash; None where they are not kept any more."""
    try:
        with scratch() as folder:
            return io.BytesIO(blobs.held(sha256, folder=folder, shelf=SHELF).read_bytes())
    except (LakeError, OSError):
        return None
