"""Remote-write payloads of many GPUs, and the scalar truth about them; no code of the product's.

Every value is a function of the GPU and the tick, so the truth needs no payload: it is computed one
sample after another in plain Python.
"""

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass

import cramjam

POWER = "DCGM_FI_DEV_POWER_USAGE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Some GPUs that are read each `every_ms` from `start_ms` on."""

    gpus: int
    start_ms: int
    every_ms: int
    per_request: int = 2_000

    def uuid(self, gpu: int) -> str:
        return f"GPU-{random.Random(gpu).getrandbits(128):032x}"

    def power_w(self, gpu: int, tick: int) -> float:
        """Between 400 and 650 W, another each tick."""
        return 400 + 250 * ((gpu * 2_654_435_761 + tick * 40_503) % 999_983) / 999_983

    def at_ms(self, tick: int) -> int:
        return self.start_ms + tick * self.every_ms

    def energy_j(self, gpu: int, ticks: int) -> float:
        """The oracle: the trapezoid rule, one pair of samples after another."""
        whole = 0.0
        for tick in range(1, ticks):
            mean_w = (self.power_w(gpu, tick - 1) + self.power_w(gpu, tick)) / 2
            whole += mean_w * self.every_ms / 1000
        return whole


class Payloads:
    """The requests of a fleet, tick by tick, as Prometheus packs them: one sample a series."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self._labels = [self._labels_of(gpu) for gpu in range(fleet.gpus)]

    def tick(self, tick: int) -> Iterator[bytes]:
        """The requests of one tick, each with its GPUs in order."""
        fleet = self.fleet
        time = _varint(fleet.at_ms(tick))
        for first in range(0, fleet.gpus, fleet.per_request):
            content = bytearray()
            for gpu in range(first, min(first + fleet.per_request, fleet.gpus)):
                value = struct.pack("<d", fleet.power_w(gpu, tick))
                sample = b"\x09" + value + b"\x10" + time
                series = self._labels[gpu] + b"\x12" + _varint(len(sample)) + sample
                content += b"\x0a" + _varint(len(series)) + series
            yield bytes(cramjam.snappy.compress_raw(bytes(content)))

    def ticks(self, first: int, last: int) -> list[list[bytes]]:
        return [list(self.tick(tick)) for tick in range(first, last)]

    def _labels_of(self, gpu: int) -> bytes:
        host = gpu // 8
        labels = {
            "Hostname": f"gpu-node-{host:05d}",
            "UUID": self.fleet.uuid(gpu),
            "__name__": POWER,
            "cluster": "train-a",
            "device": f"nvidia{gpu % 8}",
            "gpu": str(gpu % 8),
            "instance": f"10.{host >> 8}.{host & 255}.7:9400",
            "job": "dcgm-exporter",
            "modelName": "NVIDIA H100 80GB HBM3",
            "namespace": "train",
            "pod": f"llm-pretrain-{host:05d}",
        }
        return b"".join(
            _piece(_piece(name.encode(), tag=b"\x0a") + _piece(text.encode(), tag=b"\x12"))
            for name, text in sorted(labels.items())
        )


def _varint(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def _piece(content: bytes, *, tag: bytes = b"\x0a") -> bytes:
    return tag + _varint(len(content)) + content
