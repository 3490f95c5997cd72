"""What one tick of the agent read: devices, their readings, host meters, jobs; no reading here."""

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final

Document = dict[str, Any]  # as JSON writes it


@dataclass(frozen=True, slots=True, kw_only=True)
class MigInstance:
    """A MIG instance of a device; its energy is in its parent's counter and nowhere else."""

    uuid: str
    profile: str
    sm_fraction: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device as a batch names it; two ticks with equal devices may share a batch."""

    uuid: str
    index: int
    model: str
    power_limit_w: float | None  # the highest that the board allows, not the cap in force
    epoch: int
    energy_scope: str = "gpu"  # module: the counter holds CPU and memory of the module too
    power_field: str = ""  # average, instant: what power_w is; empty where power is unread
    mig: tuple[MigInstance, ...] | None = None  # None: MIG is off

    def document(self) -> Document:
        """The device as the batch format writes it."""
        mig = None
        if self.mig is not None:
            mig = {"instances": [asdict(instance) for instance in self.mig]}
        return {
            "uuid": self.uuid,
            "model": self.model,
            "power_limit_w": self.power_limit_w,
            "epoch": self.epoch,
            "energy_scope": self.energy_scope,
            "mig": mig,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one device said at one instant; None where it could not be read."""

    device: int  # index into the tick's devices
    at_ms: int
    counter_millijoule: int | None = None
    power_w: float | None = None
    utilisation_fraction: float | None = None
    memory_used_bytes: int | None = None
    temperature_c: float | None = None
    sm_clock_hz: int | None = None
    power_limit_w: float | None = None
    throttle_reasons: int | None = None
    xid: int | None = None  # 0: none since the reading before
    ecc_errors: int | None = None
    memory_total_bytes: int | None = None  # for the agent's own endpoint, not sent


SENT_COLUMNS: Final = tuple(
    item.name for item in fields(Reading) if item.name not in {"device", "memory_total_bytes"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReading:
    """The host's power by one of its meters, and whether the GPUs are in it."""

    at_ms: int
    meter: str  # bmc, rapl
    power_w: float
    includes_accelerators: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JobNote:
    """A job seen on a device at an instant."""

    device: int
    kind: str  # slurm, kubernetes, environment, process
    job: str
    run: str  # project/run, or empty
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """All that was read at one beat of the agent."""

    devices: tuple[Device, ...] = ()
    readings: tuple[Reading, ...] = ()
    nodes: tuple[NodeReading, ...] = ()
    jobs: tuple[JobNote, ...] = field(default=())

    @property
    def rows(self) -> int:
        """How many readings would be lost with it."""
        return len(self.readings) + len(self.nodes)
