"""The CPUs' and memory's power by RAPL counters in /sys/class/powercap; never the GPUs'."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)
LONGEST_S: Final = 300.0  # apart: over more the counter may have wrapped twice


@dataclass(frozen=True, slots=True, kw_only=True)
class _Zone:
    name: str
    energy_uj: Path
    range_uj: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    at_s: float
    energy_uj: tuple[int, ...]


def rise(before: int, after: int, *, range_uj: int) -> int:
    """How far a counter rose that begins again at its range."""
    return after - before if after >= before else after - before + range_uj + 1


class Rapl:
    """The sum of the packages and, where it is a counter beside them, the memory.

    Not added: core and uncore, which are in their package; psys, which holds the packages; the
    same package seen again through MMIO. GPUs on their own boards are in none of them.
    """

    def __init__(self, sys_root: Path) -> None:
        self._zones = _zones(sys_root / "class/powercap")
        self._before: _Seen | None = None
        if self._zones:
            log.info("RAPL: %s; GPUs not included", ", ".join(zone.name for zone in self._zones))

    def __bool__(self) -> bool:
        return bool(self._zones)

    def power_w(self, at_s: float) -> float | None:
        """The mean power since the call before; None at the first, or where it is unreadable."""
        try:
            energies = tuple(int(zone.energy_uj.read_text("ascii")) for zone in self._zones)
        except (OSError, ValueError) as error:
            log.warning("RAPL cannot be read: %s", error)
            self._zones = ()
            return None
        before, self._before = self._before, _Seen(at_s=at_s, energy_uj=energies)
        if before is None or not 0 < at_s - before.at_s <= LONGEST_S:
            return None
        total_uj = sum(
            rise(old, new, range_uj=zone.range_uj)
            for zone, old, new in zip(self._zones, before.energy_uj, energies, strict=True)
        )
        return total_uj / 1e6 / (at_s - before.at_s)


def _zones(root: Path) -> tuple[_Zone, ...]:
    found = []
    for folder in sorted(root.glob("intel-rapl:*")):
        try:
            name = (folder / "name").read_text("ascii").strip()
            counts = name.startswith("package") or name == "dram"
            if not counts:
                continue
            (folder / "energy_uj").read_text("ascii")  # it may be root's alone
            zone = _Zone(
                name=f"{name} ({folder.name})",
                energy_uj=folder / "energy_uj",
                range_uj=int((folder / "max_energy_range_uj").read_text("ascii")),
            )
        except (OSError, ValueError) as error:
            log.warning("RAPL zone %s cannot be read: %s", folder.name, error)
            continue
        found.append(zone)
    return tuple(found)
