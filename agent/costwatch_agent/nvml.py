"""The GPUs through NVML's own binding: which there are, and what each says; no epochs, no jobs."""

import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import pynvml

from costwatch_agent.mig import mig_instances
from costwatch_agent.power import PowerMeter, power_meter
from costwatch_agent.records import MigInstance

log = logging.getLogger(__name__)
# After these the handles are worth nothing: NVML is closed and opened again.
LOST: Final = frozenset(
    {
        pynvml.NVML_ERROR_UNINITIALIZED,
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
        pynvml.NVML_ERROR_GPU_IS_LOST,
        pynvml.NVML_ERROR_RESET_REQUIRED,
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
        pynvml.NVML_ERROR_GPU_NOT_FOUND,
        pynvml.NVML_ERROR_UNKNOWN,
    }
)
# A device that answers one of these to a question is not asked it again until NVML is opened anew.
FINAL: Final = frozenset(
    {
        pynvml.NVML_ERROR_NOT_SUPPORTED,
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
        pynvml.NVML_ERROR_NO_PERMISSION,
    }
)
MAX_EVENTS: Final = 64  # of one tick


class NvmlLostError(Exception):
    """NVML or a device of it does not answer any more. `code`: NVML's own."""

    def __init__(self, code: int, device: str) -> None:
        super().__init__(f"{device}: {pynvml.nvmlErrorString(code)}")
        self.code = code


@dataclass(slots=True, kw_only=True)
class Gpu:
    """An open device."""

    handle: Any
    index: int
    uuid: str
    model: str
    max_limit_w: float | None
    meter: PowerMeter | None
    mig: tuple[MigInstance, ...] | None
    mig_handles: list[Any]
    unreadable: set[str] = field(default_factory=set)
    xid: int | None = None  # None: its events cannot be had


@dataclass(slots=True, kw_only=True)
class Measures:
    """What a device said; None where it could not be read."""

    at_s: float
    counter_millijoule: int | None
    power_w: float | None
    utilisation_fraction: float | None
    memory_used_bytes: int | None
    memory_total_bytes: int | None
    temperature_c: float | None
    sm_clock_hz: int | None
    power_limit_w: float | None
    throttle_reasons: int | None
    ecc_errors: int | None
    xid: int | None


class Nvml:
    """An open NVML. Use from one thread."""

    def __init__(self) -> None:
        """Open it. pynvml.NVMLError: there is none, or the driver is not loaded."""
        pynvml.nvmlInit()
        self.gpus: list[Gpu] = []
        self.incomplete = False  # a device could not be opened
        self._events: Any = None
        try:
            self.driver = text(pynvml.nvmlSystemGetDriverVersion())
            for index in range(pynvml.nvmlDeviceGetCount()):
                self._open_gpu(index)
            self._watch_xid()
        except pynvml.NVMLError:
            self.close()
            raise

    def _open_gpu(self, index: int) -> None:
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        except pynvml.NVMLError as error:
            if error.value not in LOST | FINAL:
                raise
            log.error("GPU %d cannot be opened: %s", index, error)
            self.incomplete = True
            return
        mig, mig_handles = mig_instances(handle)
        self.gpus.append(
            Gpu(
                handle=handle,
                index=index,
                uuid=text(pynvml.nvmlDeviceGetUUID(handle)),
                model=text(pynvml.nvmlDeviceGetName(handle)),
                max_limit_w=max_limit_w(handle),
                meter=power_meter(handle),
                mig=mig,
                mig_handles=mig_handles,
            )
        )

    def _watch_xid(self) -> None:
        try:
            self._events = pynvml.nvmlEventSetCreate()
        except pynvml.NVMLError as error:
            log.info("XID errors cannot be watched: %s", error)
            return
        for gpu in self.gpus:
            with contextlib.suppress(pynvml.NVMLError):
                pynvml.nvmlDeviceRegisterEvents(
                    gpu.handle, pynvml.nvmlEventTypeXidCriticalError, self._events
                )
                gpu.xid = 0

    def take_xids(self) -> None:
        """Give each device the last XID since the tick before, 0 where there was none."""
        if self._events is None:
            return
        by_uuid = {}
        for gpu in self.gpus:
            by_uuid[gpu.uuid] = gpu
            gpu.xid = None if gpu.xid is None else 0
        for _ in range(MAX_EVENTS):
            try:
                event = pynvml.nvmlEventSetWait_v2(self._events, 0)
                uuid = text(pynvml.nvmlDeviceGetUUID(event.device))
            except pynvml.NVMLError:
                return  # a timeout: nothing is left
            if uuid in by_uuid:
                by_uuid[uuid].xid = int(event.eventData)
                log.warning("XID %d on GPU %d (%s)", event.eventData, by_uuid[uuid].index, uuid)

    def read(self, gpu: Gpu) -> Measures:
        """Ask a device everything; the counter first, beside the instant that it stands for."""
        counter = ask(gpu, "energy counter", pynvml.nvmlDeviceGetTotalEnergyConsumption)
        at_s = time.time()
        power = ask(gpu, "power", gpu.meter.read) if gpu.meter is not None else None
        use = ask(gpu, "utilisation", pynvml.nvmlDeviceGetUtilizationRates)
        memory = ask(gpu, "memory", pynvml.nvmlDeviceGetMemoryInfo)
        temperature = ask(gpu, "temperature", _temperature)
        clock = ask(gpu, "SM clock", _sm_clock)
        limit = ask(gpu, "power limit", pynvml.nvmlDeviceGetEnforcedPowerLimit)
        throttle = ask(gpu, "throttling", pynvml.nvmlDeviceGetCurrentClocksThrottleReasons)
        ecc = ask(gpu, "ECC errors", _ecc_errors)
        return Measures(
            at_s=at_s,
            counter_millijoule=counter,
            power_w=power,
            utilisation_fraction=None if use is None else use.gpu / 100,
            memory_used_bytes=None if memory is None else memory.used,
            memory_total_bytes=None if memory is None else memory.total,
            temperature_c=None if temperature is None else float(temperature),
            sm_clock_hz=None if clock is None else clock * 1_000_000,
            power_limit_w=None if limit is None else limit / 1000,
            throttle_reasons=throttle,
            ecc_errors=ecc,
            xid=gpu.xid,
        )

    def pids(self, gpu: Gpu) -> list[int]:
        """The processes that compute on a device, those on its MIG instances with them."""
        found = ask(gpu, "processes", pynvml.nvmlDeviceGetComputeRunningProcesses)
        if found is None and gpu.mig_handles:
            found = []
            for handle in gpu.mig_handles:
                with contextlib.suppress(pynvml.NVMLError):
                    found += pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
        return sorted({process.pid for process in found or ()})

    def close(self) -> None:
        """Let go of it, even where it does not answer."""
        with contextlib.suppress(pynvml.NVMLError):
            if self._events is not None:
                pynvml.nvmlEventSetFree(self._events)
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def ask(gpu: Gpu, what: str, question: Callable[[Any], Any]) -> Any:
    """A device's answer; None where it has none. NvmlLostError: the handle is worth nothing."""
    if what in gpu.unreadable:
        return None
    try:
        return question(gpu.handle)
    except pynvml.NVMLError as error:
        if error.value in LOST:
            raise NvmlLostError(error.value, f"GPU {gpu.index}") from error
        if error.value in FINAL:
            gpu.unreadable.add(what)
            log.warning("GPU %d: %s cannot be read: %s", gpu.index, what, error)
        return None


def text(value: str | bytes) -> str:
    """NVML's texts: older bindings hand out bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def max_limit_w(handle: Any) -> float | None:
    """The highest power limit that the board allows; None where it does not tell."""
    with contextlib.suppress(pynvml.NVMLError):
        return float(pynvml.nvmlDeviceGetPowerManagementLimitConstraints(handle)[1]) / 1000
    with contextlib.suppress(pynvml.NVMLError):
        return float(pynvml.nvmlDeviceGetEnforcedPowerLimit(handle)) / 1000
    return None


def say_what_was_found(gpu: Gpu) -> None:
    """What a reader of the log needs to judge the device's figures."""
    meter = "no power" if gpu.meter is None else f"{gpu.meter.field} power by {gpu.meter.source}"
    log.info("GPU %d %s %s: %s", gpu.index, gpu.uuid, gpu.model, meter)
    if gpu.meter is not None and gpu.meter.scope == "module":
        log.warning(
            "GPU %d tells the power of its whole module (GPU, CPU and memory): its energy is taken "
            "as the module's, and RAPL is not read on this node",
            gpu.index,
        )
    for instance in gpu.mig or ():
        share = "unknown" if instance.sm_fraction is None else f"{instance.sm_fraction:.2f}"
        log.info(
            "GPU %d: MIG instance %s (%s), share of the SMs %s; its energy is in the GPU's, once",
            gpu.index,
            instance.uuid,
            instance.profile,
            share,
        )


def _temperature(handle: Any) -> Any:
    return pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)


def _sm_clock(handle: Any) -> Any:
    return pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)


def _ecc_errors(handle: Any) -> Any:
    return pynvml.nvmlDeviceGetTotalEccErrors(
        handle, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC
    )
