"""The batch of an agent, format costwatch-agent/1: typed reading, strict checks, columns.

What the bytes cannot be is refused with the field's name; what a device cannot have read is set
aside, so that the rest of the batch is kept.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final, Literal

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta, Struct

from carbon.adapters.agent_columns import AgentBatchError, columns_of, node_columns
from carbon.packed import Brought, DeviceAbout, JobNote

FORMAT: Final = "costwatch-agent/1"
MICROSECOND_PER_MS: Final = 1_000
BODY: Final = "body"  # the field of what is wrong with all of it
_ABOUT_A_FIELD: Final = re.compile(r"Object (missing required|contains unknown) field `(.+)`")

Whole = Annotated[int, Meta(ge=0, le=2**53)]
Millisecond = Annotated[int, Meta(ge=0, le=253_402_300_799_999)]
Fraction = Annotated[float, Meta(ge=0.0, le=1.0)]
Watt = Annotated[float, Meta(ge=0.0, le=1e9)]
Name = Annotated[str, Meta(min_length=1, max_length=120)]
Text = Annotated[str, Meta(max_length=120)]
Long = Annotated[str, Meta(max_length=200)]


class _Agent(Struct, forbid_unknown_fields=True):
    name: Name
    version: Annotated[str, Meta(max_length=80)] = ""


class _MigInstance(Struct, forbid_unknown_fields=True):
    uuid: Name
    profile: Text = ""
    sm_fraction: Fraction | None = None


class _Mig(Struct, forbid_unknown_fields=True):
    instances: Annotated[list[_MigInstance], Meta(max_length=64)]


class _Device(Struct, forbid_unknown_fields=True):
    uuid: Name
    model: Text = ""
    power_limit_w: Watt | None = None
    epoch: Whole = 0
    energy_scope: Literal["gpu", "module"] = "gpu"
    mig: _Mig | None = None


class _Readings(Struct, forbid_unknown_fields=True):
    device: list[int]
    at_ms: list[Millisecond]
    counter_millijoule: list[int | None] | None = None
    power_w: list[float | None] | None = None
    power_field: Literal["average", "instant", ""] = ""
    utilisation_fraction: list[Fraction | None] | None = None
    memory_used_bytes: list[Whole | None] | None = None
    temperature_c: list[Annotated[float, Meta(ge=-273.15, le=1000.0)] | None] | None = None
    sm_clock_hz: list[Whole | None] | None = None
    power_limit_w: list[Watt | None] | None = None
    throttle_reasons: list[Whole | None] | None = None
    xid: list[Annotated[int, Meta(ge=0, le=2**31 - 1)] | None] | None = None
    ecc_errors: list[Whole | None] | None = None


class _NodeReading(Struct, forbid_unknown_fields=True):
    at_ms: Millisecond
    meter: Literal["bmc", "rapl", "pdu"]
    power_w: float
    includes_accelerators: bool


class _Job(Struct, forbid_unknown_fields=True):
    device: int
    kind: Literal["slurm", "kubernetes", "environment", "process"]
    job: Annotated[str, Meta(min_length=1, max_length=200)]
    at_ms: Millisecond
    run: Long = ""


class _Batch(Struct, forbid_unknown_fields=True):
    format: Literal["costwatch-agent/1"]
    agent: _Agent
    boot: Annotated[str, Meta(min_length=1, max_length=64)]
    sequence: Annotated[int, Meta(ge=0, le=2**62)]
    devices: Annotated[list[_Device], Meta(max_length=1024)]
    readings: _Readings
    dropped: Whole = 0
    node: Text = ""
    sent_at: Annotated[datetime, Meta(tz=True)] | None = None
    node_readings: list[_NodeReading] = []
    jobs: Annotated[list[_Job], Meta(max_length=100_000)] = []


class _Peek(Struct):
    format: Any = None


class _PeekAgent(Struct):
    agent: _Agent


_decode = msgspec.json.Decoder(_Batch).decode
_peek = msgspec.json.Decoder(_Peek).decode
_peek_agent = msgspec.json.Decoder(_PeekAgent).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentBatch:
    """A batch as it was understood; `future` says that readings lie ahead of our clock."""

    name: str
    version: str
    boot: str
    sequence: int
    rows: int
    brought: Brought
    first: int | None  # microseconds, of the good readings
    last: int | None
    future: bool


def is_agent_batch(body: bytes) -> bool:
    """Whether the body calls itself an agent's batch, of whatever version."""
    try:
        name = _peek(body).format
    except (msgspec.DecodeError, RecursionError):
        return False
    return isinstance(name, str) and name.startswith("costwatch-agent/")


def agent_name(body: bytes) -> str:
    """The name of the agent that sent a body, empty where it does not say."""
    try:
        return _peek_agent(body).agent.name
    except (msgspec.DecodeError, RecursionError):
        return ""


def read_batch(body: bytes, *, newest: int) -> AgentBatch:
    """Read a batch; readings after `newest` (microseconds) are set aside.

    Raises:
        AgentBatchError: other fields, kinds, lengths or ranges; names the field.
    """
    try:
        batch = _decode(body)
    except msgspec.ValidationError as error:
        raise _refusal(str(error)) from error
    except msgspec.DecodeError as error:
        raise AgentBatchError(f"not JSON: {error}", field=BODY, code="not_json") from error
    _check_texts(batch)
    at = np.array(batch.readings.at_ms, dtype=np.int64) * MICROSECOND_PER_MS
    columns = columns_of(
        batch.readings, at, uuids=[one.uuid for one in batch.devices], epochs=_epochs(batch)
    )
    limits = [one.power_limit_w for one in batch.devices]
    columns.set_impossible_aside(newest=newest, limits_w=limits)
    nodes = node_columns(batch.node, batch.node_readings, columns, newest=newest)
    return AgentBatch(
        name=batch.agent.name,
        version=batch.agent.version,
        boot=batch.boot,
        sequence=batch.sequence,
        rows=len(at) + len(batch.node_readings),
        brought=Brought(
            devices=tuple(_about(one, batch.node) for one in batch.devices),
            power=columns.power(),
            counters=columns.counters(),
            use=columns.use(),
            nodes=nodes,
            jobs=_jobs(batch, newest=newest),
            power_field=batch.readings.power_field,
            set_aside=tuple(columns.aside),
            dropped=batch.dropped,
        ),
        first=columns.first(),
        last=columns.last(),
        future=any(one.reason == "in_the_future" for one in columns.aside),
    )


def _refusal(said: str) -> AgentBatchError:
    """What the decoder says, with the field that it is about."""
    problem, is_within, path = said.rpartition(" - at `$")
    problem, path = (problem, path.strip("`.")) if is_within else (said, "")
    about = _ABOUT_A_FIELD.fullmatch(problem)
    if about is None:
        return AgentBatchError(problem, field=path or BODY)
    problem = "is missing" if about[1] == "missing required" else f"is no field of {FORMAT}"
    return AgentBatchError(problem, field=f"{path}.{about[2]}".strip("."))


def _epochs(batch: _Batch) -> npt.NDArray[np.int64]:
    return np.array([one.epoch for one in batch.devices], dtype=np.int64)


def _check_texts(batch: _Batch) -> None:
    """Refuse names that no table and no page can hold."""
    texts: list[tuple[str, str]] = [
        ("agent.name", batch.agent.name),
        ("agent.version", batch.agent.version),
        ("boot", batch.boot),
        ("node", batch.node),
    ]
    for index, device in enumerate(batch.devices):
        texts += [
            (f"devices[{index}].uuid", device.uuid),
            (f"devices[{index}].model", device.model),
        ]
        for instance in device.mig.instances if device.mig else ():
            texts += [(f"devices[{index}].mig", f"{instance.uuid}{instance.profile}")]
    for index, job in enumerate(batch.jobs):
        texts += [(f"jobs[{index}].job", job.job), (f"jobs[{index}].run", job.run)]
        if not 0 <= job.device < len(batch.devices):
            raise AgentBatchError("no such device", field=f"jobs[{index}].device")
    for field, text in texts:
        if not text.isprintable():
            raise AgentBatchError("holds characters that cannot be shown", field=field)
    uuids = [one.uuid for one in batch.devices]
    if len(set(uuids)) < len(uuids):
        raise AgentBatchError("a device is named twice", field="devices")


def _about(device: _Device, node: str) -> DeviceAbout:
    facts: dict[str, Any] = {"energy_scope": device.energy_scope}
    facts["mig"] = msgspec.to_builtins(device.mig.instances) if device.mig else None
    return DeviceAbout(
        uuid=device.uuid,
        node=node,
        model=device.model,
        power_limit_w=device.power_limit_w,
        facts=facts,
    )


def _jobs(batch: _Batch, *, newest: int) -> tuple[JobNote, ...]:
    """The sightings; one ahead of our clock says nothing."""
    return tuple(
        JobNote(
            device=one.device,
            kind=one.kind,
            job=one.job,
            run_name=one.run,
            at=one.at_ms * MICROSECOND_PER_MS,
        )
        for one in batch.jobs
        if one.at_ms * MICROSECOND_PER_MS <= newest
    )
