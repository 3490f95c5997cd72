"""The node's GPUs over time: opens NVML, opens it again when it is lost, names epochs and jobs."""

import logging
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pynvml

from costwatch_agent.crosscheck import CrossCheck
from costwatch_agent.epochs import Epochs, host_of
from costwatch_agent.jobs import JobFinder, JobNotes
from costwatch_agent.nvml import Gpu, Measures, Nvml, NvmlLostError, say_what_was_found
from costwatch_agent.records import Device, JobNote, Reading

log = logging.getLogger(__name__)
REOPEN_EVERY_S: Final = 30.0
REFRESH_EVERY_S: Final = 600.0  # MIG layouts and power limits change without a word


class DriverChangedError(Exception):
    """The driver was changed under the loaded library: only a new process can read it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a tick saw of the GPUs."""

    devices: tuple[Device, ...] = ()
    readings: tuple[Reading, ...] = ()
    jobs: tuple[JobNote, ...] = ()


class Gpus:
    """Use from one thread."""

    def __init__(self, *, proc: Path, state: Path, finder: JobFinder | None) -> None:
        self._proc = proc
        self._state = state
        self._finder = finder
        self._notes = JobNotes()
        self._nvml: Nvml | None = None
        self._epochs: Epochs | None = None
        self._next_open_s = 0.0  # of the clock that never steps
        self._opened_s = 0.0
        self._complained = ""
        self._said: dict[str, object] = {}
        self.check = CrossCheck()
        self.reopened = -1  # the first opening is none

    @property
    def has_module_scope(self) -> bool:
        """Whether a counter holds the CPU's energy too."""
        gpus = self._nvml.gpus if self._nvml else []
        return any(gpu.meter is not None and gpu.meter.scope == "module" for gpu in gpus)

    def see(self) -> Seen:
        """Read every device. What does not answer is left out: missing is not zero."""
        nvml = self._open()
        if nvml is None or self._epochs is None:
            return Seen()
        nvml.take_xids()
        devices: list[Device] = []
        readings: list[Reading] = []
        gpus: list[Gpu] = []
        lost: NvmlLostError | None = None
        for gpu in nvml.gpus:
            try:
                measures = nvml.read(gpu)
            except NvmlLostError as error:
                log.error("%s; its readings are missing until it answers", error)
                self._epochs.lose([gpu.uuid])
                lost = error
                continue
            device = self._device(gpu, measures, self._epochs)
            readings.append(_reading(len(devices), measures))
            devices.append(device)
            gpus.append(gpu)
        jobs = self._jobs(nvml, gpus, readings[0].at_ms) if readings else ()
        if lost is not None:
            self._lose(lost)
        return Seen(devices=tuple(devices), readings=tuple(readings), jobs=jobs)

    def _open(self) -> Nvml | None:
        now_s = time.monotonic()
        is_whole = self._nvml is not None and not self._nvml.incomplete
        if now_s < (self._opened_s + REFRESH_EVERY_S if is_whole else self._next_open_s):
            return self._nvml
        self._next_open_s = now_s + REOPEN_EVERY_S
        before, self._nvml = self._nvml, None
        try:
            # The new one is opened before the old is closed: the driver stays loaded.
            self._nvml = Nvml()
        except pynvml.NVMLError as error:
            self._complain(error)
        finally:
            if before is not None:
                before.close()
        if self._nvml is not None:
            self._opened_s = now_s
            self._complained = ""
            if before is None:
                self.reopened += 1
            self._introduce(self._nvml, before)
            self._begin_epochs(self._nvml.driver)
        return self._nvml

    def _introduce(self, nvml: Nvml, before: Nvml | None) -> None:
        """Say what is new of the devices, and do not ask again what they cannot answer."""
        unreadable = {gpu.uuid: gpu.unreadable for gpu in before.gpus} if before else {}
        for gpu in nvml.gpus:
            gpu.unreadable |= unreadable.get(gpu.uuid, set())
            said = (gpu.uuid, gpu.meter.source if gpu.meter else "", gpu.mig)
            if self._said.get(gpu.uuid) != said:
                self._said[gpu.uuid] = said
                say_what_was_found(gpu)

    def _complain(self, error: pynvml.NVMLError) -> None:
        if error.value == pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH:
            raise DriverChangedError(str(error)) from error
        if str(error) != self._complained:
            self._complained = str(error)
            log.error("NVML cannot be opened: %s; tried again every %.0f s", error, REOPEN_EVERY_S)

    def _begin_epochs(self, driver: str) -> None:
        if self._epochs is None:
            self._epochs = Epochs(self._state, host_of(self._proc, driver))
        else:
            self._epochs.reload(driver)

    def _lose(self, error: NvmlLostError) -> None:
        """Close NVML, so that the next tick may open it; not more often than now and then."""
        if self._nvml is None or time.monotonic() < self._next_open_s:
            return
        self._nvml.close()
        self._nvml = None
        self._next_open_s = 0.0
        log.warning("NVML is opened again (code %d)", error.code)

    def _device(self, gpu: Gpu, measures: Measures, epochs: Epochs) -> Device:
        epoch = epochs.epoch_of(
            gpu.uuid,
            counter_millijoule=measures.counter_millijoule,
            at_s=measures.at_s,
            limit_w=gpu.max_limit_w,
        )
        if measures.counter_millijoule is not None and measures.power_w is not None:
            self.check.add(
                gpu.uuid,
                at_s=time.monotonic(),
                counter_millijoule=measures.counter_millijoule,
                power_w=measures.power_w,
                epoch=epoch,
            )
        return Device(
            uuid=gpu.uuid,
            index=gpu.index,
            model=gpu.model,
            power_limit_w=gpu.max_limit_w,
            epoch=epoch,
            energy_scope=gpu.meter.scope if gpu.meter else "gpu",
            power_field=gpu.meter.field if gpu.meter else "",
            mig=gpu.mig,
        )

    def _jobs(self, nvml: Nvml, gpus: list[Gpu], at_ms: int) -> tuple[JobNote, ...]:
        if self._finder is None:
            return ()
        uuids = [gpu.uuid for gpu in gpus]
        pids: list[list[int]] = []
        for gpu in gpus:
            try:
                pids.append(nvml.pids(gpu))
            except NvmlLostError:
                pids.append([])
        owners = self._finder.owners(pids, uuids, [gpu.index for gpu in gpus])
        return self._notes.note(owners, uuids, at_ms)

    def remember(self) -> None:
        """Keep the counters' lives for the next start."""
        if self._epochs is not None:
            try:
                self._epochs.save()
            except OSError as error:
                log.error("the counters' epochs cannot be remembered: %s", error.strerror)

    def close(self) -> None:
        """Let go of NVML."""
        if self._nvml is not None:
            self._nvml.close()
            self._nvml = None


def _reading(device: int, measures: Measures) -> Reading:
    return Reading(
        device=device,
        at_ms=int(measures.at_s * 1000),
        counter_millijoule=measures.counter_millijoule,
        power_w=measures.power_w,
        utilisation_fraction=measures.utilisation_fraction,
        memory_used_bytes=measures.memory_used_bytes,
        memory_total_bytes=measures.memory_total_bytes,
        temperature_c=measures.temperature_c,
        sm_clock_hz=measures.sm_clock_hz,
        power_limit_w=measures.power_limit_w,
        throttle_reasons=measures.throttle_reasons,
        xid=measures.xid,
        ecc_errors=measures.ecc_errors,
    )
