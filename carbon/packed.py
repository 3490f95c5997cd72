"""What one request brought, in columns, and its packed form while it waits; no tables, no rules.

A packed body is ours alone: written by a web process, read by the worker that books it.
"""

import functools
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
import zstandard

MAGIC: Final = b"CWB1"  # the form of a packed body, and its version
METERS: Final = ("bmc", "rapl", "pdu")  # what NodeColumns.meter counts from 0
MEASURES: Final = (  # the fields of a UseReading
    "utilisation_fraction",
    "memory_used_bytes",
    "temperature_c",
    "sm_clock_hz",
    "power_limit_w",
    "throttle_reasons",
    "xid",
    "ecc_errors",
)
MAX_UNPACKED_BYTES: Final = 256 << 20
_HEAD: Final = struct.Struct("<4sII")  # magic, bytes of the head, bytes of everything unpacked
_LEVEL: Final = 1
ABOUTS_KEPT: Final = 100_000  # devices that a process remembers
LISTS_KEPT: Final = 128  # lists of devices that a process remembers
LONGEST_LIST_KEPT: Final = 1 << 20  # bytes of a list
_INDEXES: Final = {"device": "devices", "node": "names"}  # column: what it is an index into

Device = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


_encode = msgspec.msgpack.Encoder().encode


class PackedBodyError(ValueError):
    """Bytes that are no packed body of this version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceAbout:
    """A device as its sender names it; `facts` are shown beside its newest reading (MIG, scope).

    It holds its packed form: senders name the same devices in each request.
    """

    uuid: str
    node: str = ""
    model: str = ""
    power_limit_w: float | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    packed: bytes = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        about = (self.uuid, self.node, self.model, self.power_limit_w, dict(self.facts))
        object.__setattr__(self, "packed", _encode(about))


@dataclass(frozen=True, slots=True, kw_only=True)
class JobNote:
    """A job that was seen on a device (index into devices) at an instant in microseconds."""

    device: int
    kind: str
    job: str
    run_name: str
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """A reading that the door found impossible, to be kept in quarantine with its reason."""

    device_uuid: str
    at: int | None
    reading: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerColumns:
    """Power at instants (microseconds since 1970, UTC); `device` is an index into devices."""

    device: Device
    at: Ints
    power_w: Floats

    def __len__(self) -> int:
        return len(self.device)


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterColumns:
    """Energy counters at instants; `epoch` names the counter's life, 0 where nobody knows it."""

    device: Device
    at: Ints
    counter_millijoule: Ints
    epoch: Ints

    def __len__(self) -> int:
        return len(self.device)


@dataclass(frozen=True, slots=True, kw_only=True)
class UseColumns:
    """What devices did at instants: measures by name, NaN where unread."""

    device: Device
    at: Ints
    measures: Mapping[str, Floats]

    def __len__(self) -> int:
        return len(self.device)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeColumns:
    """Power of whole nodes; `node` is an index into names, `meter` one into METERS."""

    names: tuple[str, ...]
    node: Device
    at: Ints
    meter: npt.NDArray[np.int8]
    power_w: Floats
    includes_accelerators: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.node)


def _none(kind: type[np.generic]) -> Any:
    return np.zeros(0, dtype=kind)


def no_power() -> PowerColumns:
    """No power readings."""
    return PowerColumns(device=_none(np.int32), at=_none(np.int64), power_w=_none(np.float64))


def no_counters() -> CounterColumns:
    """No counters."""
    return CounterColumns(
        device=_none(np.int32),
        at=_none(np.int64),
        counter_millijoule=_none(np.int64),
        epoch=_none(np.int64),
    )


def no_use() -> UseColumns:
    """Nothing of what devices did."""
    return UseColumns(device=_none(np.int32), at=_none(np.int64), measures={})


def no_nodes() -> NodeColumns:
    """No readings of nodes."""
    return NodeColumns(
        names=(),
        node=_none(np.int32),
        at=_none(np.int64),
        meter=_none(np.int8),
        power_w=_none(np.float64),
        includes_accelerators=_none(np.bool_),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """What one request brought; `ignored` and `dropped` are counts for the sender's row.

    `power_field` says which reading of the driver the power is: average or instant.
    """

    devices: tuple[DeviceAbout, ...] = ()
    power: PowerColumns = field(default_factory=no_power)
    counters: CounterColumns = field(default_factory=no_counters)
    use: UseColumns = field(default_factory=no_use)
    nodes: NodeColumns = field(default_factory=no_nodes)
    jobs: tuple[JobNote, ...] = ()
    power_field: str = ""
    set_aside: tuple[SetAside, ...] = ()
    ignored: int = 0
    dropped: int = 0

    @property
    def rows(self) -> int:
        """Readings that are to be stored or kept in quarantine."""
        tables = (self.power, self.counters, self.use, self.nodes)
        return sum(len(one) for one in tables) + len(self.set_aside)


class _Head(msgspec.Struct, array_like=True):
    """Everything but the columns, and what the columns are: (name, dtype, count)."""

    devices: msgspec.Raw  # a list of bytes, each device packed by itself
    jobs: list[tuple[int, str, str, str, int]]
    set_aside: list[tuple[str, int | None, str, str]]
    names: tuple[str, ...]
    power_field: str
    ignored: int
    dropped: int
    columns: list[tuple[str, str, int]]


_decode_about = msgspec.msgpack.Decoder(tuple[str, str, str, float | None, dict[str, Any]]).decode
_decode_devices = msgspec.msgpack.Decoder(list[bytes]).decode
_decode_head = msgspec.msgpack.Decoder(_Head).decode


def _columns(brought: Brought) -> dict[str, npt.NDArray[Any]]:
    """The columns by table and name; those of an empty table are left out."""
    tables: dict[str, tuple[Any, tuple[str, ...]]] = {
        "power": (brought.power, ("device", "at", "power_w")),
        "counters": (brought.counters, ("device", "at", "counter_millijoule", "epoch")),
        "use": (brought.use, ("device", "at")),
        "nodes": (brought.nodes, ("node", "at", "meter", "power_w", "includes_accelerators")),
    }
    found = {
        f"{table}.{name}": getattr(columns, name)
        for table, (columns, names) in tables.items()
        if len(columns)
        for name in names
    }
    if len(brought.use):
        found |= {f"measure.{name}": values for name, values in brought.use.measures.items()}
    return found


def pack(brought: Brought) -> bytes:
    """The body as bytes."""
    columns = _columns(brought)
    about = _Head(
        devices=msgspec.Raw(_encode([one.packed for one in brought.devices])),
        jobs=[(one.device, one.kind, one.job, one.run_name, one.at) for one in brought.jobs],
        set_aside=[(one.device_uuid, one.at, one.reading, one.reason) for one in brought.set_aside],
        names=brought.nodes.names,
        power_field=brought.power_field,
        ignored=brought.ignored,
        dropped=brought.dropped,
        columns=[(name, values.dtype.str, len(values)) for name, values in columns.items()],
    )
    head = _encode(about)
    plain = b"".join([head, *(np.ascontiguousarray(one).data for one in columns.values())])
    packed = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compress(plain)
    return _HEAD.pack(MAGIC, len(head), len(plain)) + packed


def unpack(data: bytes | memoryview) -> Brought:
    """The body that was packed; its arrays may not be written to.

    Raises:
        PackedBodyError: other bytes, another version, or lengths that do not fit.
    """
    plain, size = _plain(bytes(data))
    try:
        head = _decode_head(plain[:size])
        devices = _listed(bytes(head.devices))
        lengths = {"devices": len(devices), "names": len(head.names)}
        columns = _read_columns(head, lengths, plain, size)
        return _brought(head, devices, columns)
    except (msgspec.DecodeError, TypeError, KeyError) as error:
        raise PackedBodyError(f"the head of a packed body cannot be read: {error}") from error


def _plain(data: bytes) -> tuple[bytes, int]:
    """The unpacked bytes and how many of them are the head."""
    if len(data) < _HEAD.size:
        raise PackedBodyError(f"{len(data)} bytes are too few for a packed body")
    magic, size, whole = _HEAD.unpack_from(data)
    if magic != MAGIC:
        raise PackedBodyError(f"a packed body starts with {MAGIC!r}, this one with {magic!r}")
    if not size <= whole <= MAX_UNPACKED_BYTES:
        raise PackedBodyError(f"a packed body of {whole} bytes with a head of {size}")
    try:
        plain = zstandard.ZstdDecompressor().decompress(
            data[_HEAD.size :], max_output_size=whole or 1
        )
    except zstandard.ZstdError as error:
        raise PackedBodyError(f"a packed body is broken: {error}") from error
    if len(plain) != whole:
        raise PackedBodyError(f"a packed body holds {len(plain)} bytes, its head says {whole}")
    return plain, size


def _read_columns(
    head: _Head, lengths: Mapping[str, int], plain: bytes, offset: int
) -> dict[str, Any]:
    """The columns as arrays over the unpacked bytes."""
    columns: dict[str, Any] = {}
    rows: dict[str, int] = {}
    for name, kind, count in head.columns:
        dtype = np.dtype(kind)
        end = offset + dtype.itemsize * count
        if end > len(plain) or count < 0 or dtype.hasobject:
            raise PackedBodyError(f"the column {name} of a packed body is cut short")
        table = name.partition(".")[0].replace("measure", "use")
        if rows.setdefault(table, count) != count:
            raise PackedBodyError(f"the column {name} of a packed body has another length")
        columns[name] = np.frombuffer(plain, dtype=dtype, count=count, offset=offset)
        offset = end
        bound = _INDEXES.get(name.partition(".")[2])
        if bound and count:
            _refuse_beyond(columns[name], lengths[bound], name)
    if offset != len(plain):
        raise PackedBodyError(f"{len(plain) - offset} bytes follow the columns of a packed body")
    return columns


def _refuse_beyond(index: npt.NDArray[Any], length: int, name: str) -> None:
    if int(index.min()) < 0 or int(index.max()) >= length:
        raise PackedBodyError(f"the column {name} of a packed body names what is not there")


_abouts: dict[bytes, DeviceAbout] = {}


def _about(packed: bytes) -> DeviceAbout:
    """The device of these bytes, the same object as the last time while it is remembered."""
    known = _abouts.get(packed)
    if known is None:
        uuid, node, model, limit, facts = _decode_about(packed)
        known = DeviceAbout(uuid=uuid, node=node, model=model, power_limit_w=limit, facts=facts)
        if len(_abouts) >= ABOUTS_KEPT:
            _abouts.clear()
        _abouts[packed] = known
    return known


def _listed(packed: bytes) -> tuple[DeviceAbout, ...]:
    """The devices of a body; of the same bytes the same object, as senders repeat their lists."""
    return _listed_before(packed) if len(packed) <= LONGEST_LIST_KEPT else _list(packed)


def _list(packed: bytes) -> tuple[DeviceAbout, ...]:
    return tuple([_about(one) for one in _decode_devices(packed)])


_listed_before: Final = functools.lru_cache(maxsize=LISTS_KEPT)(_list)


def _brought(head: _Head, devices: tuple[DeviceAbout, ...], columns: Mapping[str, Any]) -> Brought:
    def table(name: str) -> dict[str, Any]:
        start = f"{name}."
        return {key[len(start) :]: one for key, one in columns.items() if key.startswith(start)}

    power, counters, use, nodes = (table(one) for one in ("power", "counters", "use", "nodes"))
    return Brought(
        devices=devices,
        power=PowerColumns(**power) if power else no_power(),
        counters=CounterColumns(**counters) if counters else no_counters(),
        use=UseColumns(**use, measures=table("measure")) if use else no_use(),
        nodes=NodeColumns(names=head.names, **nodes) if nodes else no_nodes(),
        jobs=tuple(
            JobNote(device=device, kind=kind, job=job, run_name=run_name, at=at)
            for device, kind, job, run_name, at in head.jobs
        ),
        power_field=head.power_field,
        set_aside=tuple(
            SetAside(device_uuid=uuid, at=at, reading=reading, reason=reason)
            for uuid, at, reading, reason in head.set_aside
        ),
        ignored=head.ignored,
        dropped=head.dropped,
    )
