"""The fake NVML: compiles it, and holds the state that it answers from."""

import ctypes
import mmap
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).with_name("fake_nvml.c")
LIBRARY = "libnvidia-ml.so.1"
QUESTIONS = {
    "energy": 0, "usage": 1, "fields": 2, "utilisation": 3, "memory": 4, "temperature": 5,
    "clock": 6, "limit": 7, "throttle": 8, "ecc": 9, "processes": 10, "events": 11,
}  # fmt: skip
NOT_SUPPORTED, NO_PERMISSION, NOT_LOADED, LOST, MISMATCH = 3, 4, 9, 15, 18


class Part(ctypes.Structure):
    """A MIG instance."""

    _fields_ = [
        ("uuid", ctypes.c_char * 96), ("name", ctypes.c_char * 96),
        ("sms", ctypes.c_uint32), ("pad", ctypes.c_uint32),
    ]  # fmt: skip


class Gpu(ctypes.Structure):
    """A device."""

    _fields_ = [
        ("uuid", ctypes.c_char * 96), ("name", ctypes.c_char * 96),
        ("counter_millijoule", ctypes.c_uint64), ("counter_step", ctypes.c_uint64),
        ("rising_w", ctypes.c_double), ("rising_since_s", ctypes.c_double),
        *((name, ctypes.c_uint64) for name in ("memory_total", "memory_used", "throttle", "ecc")),
        *(
            (name, ctypes.c_uint32)
            for name in (
                "usage_milliwatt", "average_milliwatt", "instant_milliwatt", "module_milliwatt",
                "utilisation_percent", "temperature_c", "sm_clock_mhz", "limit_milliwatt",
                "max_limit_milliwatt", "architecture", "lost", "xid", "mig_on", "parts", "all_sms",
                "pids",
            )
        ),
        ("error", ctypes.c_uint32 * 16), ("pid", ctypes.c_uint32 * 8), ("part", Part * 7),
    ]  # fmt: skip


class State(ctypes.Structure):
    """Everything."""

    _fields_ = [
        *((name, ctypes.c_uint32) for name in ("gpus", "init_error", "driver_life", "wrap_bits")),
        ("driver", ctypes.c_char * 80), ("questions", ctypes.c_uint64), ("gpu", Gpu * 8),
    ]  # fmt: skip


def compiler() -> list[str]:
    """The machine's C compiler, else the one from the ziglang wheel."""
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            return [name]
    try:
        import ziglang  # noqa: F401
    except ImportError:
        raise SystemExit("The agent's tests need a C compiler: run `make setup-cc`") from None
    return [sys.executable, "-m", "ziglang", "cc"]


def compile_library(folder: Path) -> Path:
    """Build the library; returns the folder for LD_LIBRARY_PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Werror", f"-Wl,-soname,{LIBRARY}"]
    target = ["-o", str(folder / LIBRARY), str(SOURCE)]
    subprocess.run([*compiler(), *flags, *target], check=True)
    return folder


class FakeNvml:
    """A state file that processes with FAKE_NVML see change."""

    def __init__(self, path: Path, *, gpus: int = 1, driver: str = "580.1") -> None:
        self.path = path
        path.write_bytes(bytes(ctypes.sizeof(State)))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)
        self.state: Any = State.from_buffer(self._map)
        self.state.gpus = gpus
        self.state.driver_life = 1
        self.state.driver = driver.encode()
        for index in range(8):
            self._set_up(self.gpu(index), index)

    def _set_up(self, gpu: Any, index: int) -> None:
        gpu.uuid = f"GPU-{index:08d}-0000-0000-0000-000000000000".encode()
        gpu.name = b"NVIDIA H100 80GB HBM3"
        gpu.counter_millijoule = 5_000_000_000 + index
        gpu.counter_step = 1000
        gpu.memory_total, gpu.memory_used = 80 << 30, (index + 1) << 30
        gpu.average_milliwatt, gpu.instant_milliwatt = 512_300, 530_000
        gpu.usage_milliwatt = 511_000
        gpu.utilisation_percent, gpu.temperature_c, gpu.sm_clock_mhz = 97, 61, 1980
        gpu.limit_milliwatt, gpu.max_limit_milliwatt = 650_000, 700_000
        gpu.architecture, gpu.throttle, gpu.ecc = 9, 4, 0

    def gpu(self, index: int = 0) -> Any:
        return self.state.gpu[index]

    def rises(self, index: int, watts: float) -> None:
        """Let the counter rise by the clock, as a device of that power."""
        gpu = self.gpu(index)
        gpu.counter_step = 0
        gpu.rising_since_s = time.clock_gettime(time.CLOCK_MONOTONIC)
        gpu.rising_w = watts
        gpu.average_milliwatt = int(watts * 1000)

    def fails(self, index: int, question: str, code: int) -> None:
        self.gpu(index).error[QUESTIONS[question]] = code

    def reload_driver(self, *, counters_at: int = 0, driver: str | None = None) -> None:
        """All handles are worth nothing, all counters begin again."""
        for index in range(self.state.gpus):
            self.gpu(index).counter_millijoule = counters_at
        if driver:
            self.state.driver = driver.encode()
        self.state.driver_life += 1

    def splits(self, index: int, parts: list[tuple[str, int]], *, all_sms: int = 132) -> None:
        """Turn MIG on: profiles and their SMs."""
        gpu = self.gpu(index)
        gpu.mig_on, gpu.parts, gpu.all_sms = 1, len(parts), all_sms
        for at, (profile, sms) in enumerate(parts):
            gpu.part[at].uuid = f"MIG-{index}-{at}".encode()
            gpu.part[at].name = f"NVIDIA H100 80GB HBM3 MIG {profile}".encode()
            gpu.part[at].sms = sms

    def environment(self, library: Path) -> dict[str, str]:
        return {"FAKE_NVML": str(self.path), "LD_LIBRARY_PATH": str(library)}
