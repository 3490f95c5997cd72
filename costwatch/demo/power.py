"""The GPU power of the demo project: hourly energy intervals by device, and the ledger of them."""

import gzip
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import chain
from typing import Final

import numpy as np
import numpy.typing as npt

from costwatch.demo import story
from costwatch.demo.focus import instant_text
from costwatch.demo.ledger import EnergyLedger, EnergyOfDay
from costwatch.demo.noise import bell, uniform

HEADER: Final = "start,end,device_uuid,energy_millijoule,node,model,run\n"
HOUR: Final = timedelta(hours=1)
TRAINING_W: Final = 650.0
SLOW_W: Final = 505.0
IDLE_W: Final = 90.0
LIMIT_W: Final = 700.0
MILLIJOULE_PER_WATT_HOUR: Final = 3_600_000
GAP_FRACTION: Final = 0.0015
_EXPERIMENT_LEVELS_W: Final = (610.0, 480.0, 640.0, 90.0)
_DEVICE_STREAM, _HOUR_STREAM, _GAP_STREAM = 31, 1_000, 5_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerFile:
    """One month of energy intervals as gzipped CSV."""

    month: date
    name: str
    content: bytes
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HourOfFleet:
    """What the meters say of one hour: a millijoule count by device and which devices report."""

    start: datetime
    run: str
    energy_millijoule: npt.NDArray[np.int64]
    reported: npt.NDArray[np.bool_]


def experiment_level_w(start: datetime) -> float:
    """The mean power of a device in the sweep of experiments that runs at `start`."""
    sweep = (start - story.EXPERIMENTS_START) // timedelta(hours=story.EXPERIMENT_SWEEP_H)
    return _EXPERIMENT_LEVELS_W[sweep % len(_EXPERIMENT_LEVELS_W)]


def _level_w(start: datetime) -> float:
    """The mean power of a busy device in the hour from `start`."""
    if start < story.MAIN_RUN_START:
        return experiment_level_w(start)
    if story.is_restarting(start):
        return IDLE_W
    return SLOW_W if story.is_slow(start) else TRAINING_W


def reported(seed: int, start: datetime, devices: int) -> npt.NDArray[np.bool_]:
    """Which devices have a sample: not in an outage, not on the drained node, rarely a gap."""
    if story.METER_OUTAGE_START <= start < story.METER_OUTAGE_END:
        return np.zeros(devices, dtype=np.bool_)
    hour = (start - story.EXPERIMENTS_START) // HOUR
    is_there = uniform(seed=seed, stream=_GAP_STREAM + hour, count=devices) >= GAP_FRACTION
    if story.is_restarting(start):
        first = (story.FAILED_NODE - 1) * story.GPUS_PER_NODE
        is_there[first : first + story.GPUS_PER_NODE] = False
    return is_there


def fleet_hours(seed: int) -> Iterator[HourOfFleet]:
    """Every hour of experiments and main run, in order."""
    everything = story.NODE_COUNT * story.GPUS_PER_NODE
    spread_w = 7.0 * bell(seed=seed, stream=_DEVICE_STREAM, count=everything)
    start, hour = story.EXPERIMENTS_START, 0
    while start < story.AS_OF:
        is_main = start >= story.MAIN_RUN_START
        nodes = story.NODE_COUNT if is_main else story.EXPERIMENT_NODE_COUNT
        devices = nodes * story.GPUS_PER_NODE
        level_w = _level_w(start)
        noise_w = 9.0 * bell(seed=seed, stream=_HOUR_STREAM + hour, count=devices)
        scale = level_w / TRAINING_W
        power_w = np.clip(level_w + scale * (spread_w[:devices] + noise_w), 60.0, LIMIT_W)
        yield HourOfFleet(
            start=start,
            run=story.MAIN_RUN if is_main else story.EXPERIMENT_RUN,
            energy_millijoule=np.rint(power_w * MILLIJOULE_PER_WATT_HOUR).astype(np.int64),
            reported=reported(seed, start, devices),
        )
        start, hour = start + HOUR, hour + 1


def _device_columns() -> list[tuple[str, str]]:
    """For each device the text before and after its energy, without the run."""
    return [
        (story.device_uuid(node, gpu), f"{story.node_name(node)},{story.GPU_MODEL}")
        for node in range(1, story.NODE_COUNT + 1)
        for gpu in range(story.GPUS_PER_NODE)
    ]


def _add_lines(lines: list[list[str]], hour: HourOfFleet, devices: list[tuple[str, str]]) -> None:
    """Add the CSV line of one hour to each device that reports it."""
    when = f"{instant_text(hour.start)},{instant_text(hour.start + HOUR)}"
    for of_device, (uuid, place), energy, is_there in zip(
        lines, devices, hour.energy_millijoule.tolist(), hour.reported.tolist(), strict=False
    ):
        if is_there:
            of_device.append(f"{when},{uuid},{energy},{place},{hour.run}\n")


def _file(month: date, lines: list[list[str]]) -> PowerFile:
    """A month's lines device by device, as meters write them, and as databases like them."""
    text = HEADER + "".join(chain.from_iterable(lines))
    return PowerFile(
        month=month,
        name=f"demo-power-{month:%Y-%m}.csv.gz",
        content=gzip.compress(text.encode(), compresslevel=1, mtime=0),
        rows=sum(map(len, lines)),
    )


def _add(day: EnergyOfDay | None, hour: HourOfFleet) -> EnergyOfDay:
    """A day's ledger with one more hour."""
    before = day or EnergyOfDay(
        accelerator_energy_millijoule=0, covered_device_h=0, assigned_device_h=0
    )
    return EnergyOfDay(
        accelerator_energy_millijoule=before.accelerator_energy_millijoule
        + int(hour.energy_millijoule[hour.reported].sum()),
        covered_device_h=before.covered_device_h + int(hour.reported.sum()),
        assigned_device_h=before.assigned_device_h + len(hour.reported),
    )


def build_power(
    seed: int = story.DEFAULT_SEED,
) -> tuple[tuple[PowerFile, ...], EnergyLedger]:
    """All energy intervals of the demo by month, and the ledger of what they say."""
    devices = _device_columns()
    lines: defaultdict[date, list[list[str]]] = defaultdict(lambda: [[] for _ in devices])
    days: dict[date, EnergyOfDay] = {}
    for hour in fleet_hours(seed):
        day = hour.start.date()
        _add_lines(lines[day.replace(day=1)], hour, devices)
        days[day] = _add(days.get(day), hour)
    files = tuple(_file(month, of_month) for month, of_month in sorted(lines.items()))
    return files, EnergyLedger(days=days)
