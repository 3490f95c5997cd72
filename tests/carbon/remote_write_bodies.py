"""Remote-write bodies byte by byte, and an oracle that reads them: no code of the product's."""

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import cramjam

STALE = struct.unpack("<d", struct.pack("<Q", 0x7FF0000000000002))[0]
POWER = "DCGM_FI_DEV_POWER_USAGE"
COUNTER = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ts:
    """A series to send: labels, (milliseconds, value) and what else stands in it."""

    labels: Sequence[tuple[str, str]]
    samples: Sequence[tuple[int, float]] = ()
    exemplars: int = 0
    histograms: int = 0
    extra: bytes = field(default=b"")


def gpu(metric: str = POWER, number: int = 0, **labels: str) -> list[tuple[str, str]]:
    """The labels of dcgm-exporter, sorted as senders do; an empty text leaves a label out."""
    all_labels = {
        "__name__": metric,
        "Hostname": f"node-{number // 8}",
        "UUID": f"GPU-{number:08d}-aaaa-bbbb-cccc-dddddddddddd",
        "device": f"nvidia{number % 8}",
        "gpu": str(number % 8),
        "instance": f"10.0.0.{number // 8}:9400",
        "job": "dcgm",
        "modelName": "NVIDIA H100 80GB HBM3",
    } | labels
    return sorted((name, text) for name, text in all_labels.items() if text)


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def piece(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def sample(at_ms: int, value: float) -> bytes:
    """A value of 0 is left out, as senders do."""
    is_zero = struct.pack("<d", value) == bytes(8)
    text = b"" if is_zero else b"\x09" + struct.pack("<d", value)
    return text + (b"\x10" + varint(at_ms) if at_ms else b"")


def series(one: Ts) -> bytes:
    labels = b"".join(
        piece(1, piece(1, name.encode()) + piece(2, text.encode())) for name, text in one.labels
    )
    samples = b"".join(piece(2, sample(at, value)) for at, value in one.samples)
    exemplars = piece(3, piece(1, piece(1, b"trace_id") + piece(2, b"x"))) * one.exemplars
    histograms = piece(4, b"\x11" + struct.pack("<d", 3.5)) * one.histograms
    return labels + samples + exemplars + histograms + one.extra


def message(all_series: Iterable[Ts], *, metadata: int = 0) -> bytes:
    about = piece(3, b"\x08\x02" + piece(2, b"dcgm_power") + piece(4, b"help")) * metadata
    return b"".join(piece(1, series(one)) for one in all_series) + about


def packed(content: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(content))


def body(*all_series: Ts, metadata: int = 0) -> bytes:
    return packed(message(all_series, metadata=metadata))


def power(
    values: Iterable[float], *, at_ms: int, every_ms: int = 10_000, number: int = 0
) -> list[Ts]:
    """One series a sample, as Prometheus sends."""
    return [
        Ts(labels=gpu(number=number), samples=[(at_ms + every_ms * step, value)])
        for step, value in enumerate(values)
    ]


def read(content: bytes) -> Iterator[tuple[dict[str, str], list[tuple[int, float]]]]:
    """The oracle: labels and samples of each series of an unpacked body, one byte at a time."""
    for number, one in _fields(content):
        if number != 1:
            continue
        labels: dict[str, str] = {}
        samples = []
        for inner, text in _fields(one):
            if inner == 1:
                pair = dict(_fields(text))
                labels[pair.get(1, b"").decode()] = pair.get(2, b"").decode()
            elif inner == 2:
                parts = dict(_fields(text))
                samples.append((parts.get(2, 0), parts.get(1, 0.0)))
        yield labels, samples


def _fields(content: bytes) -> Iterator[tuple[int, object]]:
    place = 0
    while place < len(content):
        tag, place = _varint(content, place)
        if tag & 7 == 2:
            size, place = _varint(content, place)
            yield tag >> 3, content[place : place + size]
            place += size
        elif tag & 7 == 1:
            yield tag >> 3, struct.unpack_from("<d", content, place)[0]
            place += 8
        else:
            value, place = _varint(content, place)
            yield tag >> 3, value


def _varint(content: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7
