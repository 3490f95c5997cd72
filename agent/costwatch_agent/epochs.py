"""The life of a device's energy counter: when it began again; no NVML here.

The counter runs from the loading of the driver. The server takes two readings of one epoch as
continuous, so an epoch changes exactly when the counter began again: the node was booted, the
driver's version changed, the counter fell, or NVML was lost and the counter is low enough to have
begun anew.
"""

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from costwatch_agent.files import read_document, replace_file

HEADROOM: Final = 1.2  # of the power limit: what a device may draw at most
DEFAULT_LIMIT_W: Final = 1500.0  # where NVML does not tell the limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """A counter's life, and the last that was read of it."""

    epoch: int
    counter_millijoule: int
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What tells one start of the node and its driver from another."""

    boot_id: str
    booted_at: int  # seconds since 1970
    driver: str


def host_of(proc: Path, driver: str) -> Host:
    """Read the node's boot from /proc; a missing file leaves its part empty."""
    booted_at = 0
    try:
        boot_id = (proc / "sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        boot_id = ""
    try:
        for line in (proc / "stat").read_text("ascii").splitlines():
            if line.startswith("btime "):
                booted_at = int(line.split()[1])
    except (OSError, ValueError):
        booted_at = 0
    return Host(boot_id=boot_id, booted_at=booted_at, driver=driver)


def began_again(
    last: Life, *, counter_millijoule: int, at_s: float, lost: bool, limit_w: float | None
) -> bool:
    """Whether the counter began again since the last reading.

    `lost`: NVML did not answer in between. A counter that is higher than a device can have drawn
    since the last reading did not begin again.
    """
    if counter_millijoule < last.counter_millijoule:
        return True
    most_j = HEADROOM * (limit_w or DEFAULT_LIMIT_W) * max(at_s - last.at_s, 0.0)
    return lost and counter_millijoule <= most_j * 1000


class Epochs:
    """The lives of a node's counters, remembered across starts of the agent."""

    def __init__(self, path: Path, host: Host) -> None:
        self._path = path
        self._lives: dict[str, Life] = {}
        self._lost: set[str] = set()
        self.host = host
        known = read_document(path)
        if known.get("boot_id") == host.boot_id and known.get("driver") == host.driver:
            self._lives = _lives_in(known.get("devices"))
            self._begins = host.booted_at
        elif known.get("boot_id") == host.boot_id:
            self._begins = int(time.time())  # another driver in the same boot
        else:
            self._begins = host.booted_at

    def lose(self, uuids: list[str]) -> None:
        """NVML was lost: their counters may begin again."""
        self._lost.update(uuids)

    def reload(self, driver: str) -> None:
        """NVML came back; another driver than before means that every counter began again."""
        if driver != self.host.driver:
            self.host = Host(
                boot_id=self.host.boot_id, booted_at=self.host.booted_at, driver=driver
            )
            self._begins = max(
                int(time.time()), *(life.epoch + 1 for life in self._lives.values()), 0
            )
            self._lives.clear()

    def epoch_of(
        self, uuid: str, *, counter_millijoule: int | None, at_s: float, limit_w: float | None
    ) -> int:
        """The epoch of a reading. A device without a counter has that of the node's boot."""
        last = self._lives.get(uuid)
        if counter_millijoule is None:
            return last.epoch if last else self._begins
        epoch = last.epoch if last else self._begins
        if last is not None and began_again(
            last,
            counter_millijoule=counter_millijoule,
            at_s=at_s,
            lost=uuid in self._lost,
            limit_w=limit_w,
        ):
            epoch = max(int(at_s), last.epoch + 1)
        self._lost.discard(uuid)
        self._lives[uuid] = Life(epoch=epoch, counter_millijoule=counter_millijoule, at_s=at_s)
        return epoch

    def save(self) -> None:
        """Remember for the next start. OSError: it is not remembered."""
        document = {
            "boot_id": self.host.boot_id,
            "driver": self.host.driver,
            "devices": {uuid: asdict(life) for uuid, life in self._lives.items()},
        }
        replace_file(self._path, json.dumps(document).encode(), durable=False)


def _lives_in(devices: Any) -> dict[str, Life]:
    """What a former start remembered; what is not understood is forgotten."""
    if not isinstance(devices, dict):
        return {}
    try:
        return {uuid: Life(**life) for uuid, life in devices.items()}
    except TypeError:
        return {}
