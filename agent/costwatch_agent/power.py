"""Which of NVML's power readings a device has, what each means, and how it is read."""

import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pynvml

AVERAGE: Final = "average"
INSTANT: Final = "instant"
FIELDS: Final = (
    (pynvml.NVML_FI_DEV_POWER_AVERAGE, AVERAGE),
    (pynvml.NVML_FI_DEV_POWER_INSTANT, INSTANT),
)
# nvmlDeviceGetPowerUsage averages over a second on Ampere and newer, but not on the GA100.
GA100: Final = re.compile(r"\bA(?:100|800|30)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerMeter:
    """How a device's power is read."""

    field: str  # average, instant
    scope: str  # gpu, module
    source: str  # for the log
    read: Callable[[Any], float]  # watts; pynvml.NVMLError


def power_meter(handle: Any) -> PowerMeter | None:
    """The first reading that answers with a power above zero; None where there is none.

    The module's comes first: only the superchips that join GPU, CPU and memory have it, and there
    the energy counter is the module's too.
    """
    for scope, name in ((pynvml.NVML_POWER_SCOPE_MODULE, "module"), (0, "gpu")):
        for number, field in FIELDS:
            read = partial(_field_w, number=number, scope=scope)
            if _answers(read, handle):
                source = f"field {number}, scope {name}"
                return PowerMeter(field=field, scope=name, source=source, read=read)
    if _answers(_usage_w, handle):
        field = _meaning_of_usage(handle)
        return PowerMeter(field=field, scope="gpu", source="nvmlDeviceGetPowerUsage", read=_usage_w)
    return None


def _answers(read: Callable[[Any], float], handle: Any) -> bool:
    try:
        return read(handle) > 0
    except pynvml.NVMLError:
        return False


def _field_w(handle: Any, *, number: int, scope: int) -> float:
    value = pynvml.nvmlDeviceGetFieldValues(handle, [(number, scope)])[0]
    if value.nvmlReturn != pynvml.NVML_SUCCESS:
        raise pynvml.NVMLError(value.nvmlReturn)
    if value.valueType == pynvml.NVML_VALUE_TYPE_DOUBLE:
        milliwatt = value.value.dVal
    elif value.valueType == pynvml.NVML_VALUE_TYPE_UNSIGNED_INT:
        milliwatt = value.value.uiVal
    else:
        milliwatt = value.value.ullVal
    return float(milliwatt) / 1000


def _usage_w(handle: Any) -> float:
    return float(pynvml.nvmlDeviceGetPowerUsage(handle)) / 1000


def _meaning_of_usage(handle: Any) -> str:
    with contextlib.suppress(pynvml.NVMLError):
        if pynvml.nvmlDeviceGetArchitecture(handle) < pynvml.NVML_DEVICE_ARCH_AMPERE:
            return INSTANT
        name = pynvml.nvmlDeviceGetName(handle)
        model = name if isinstance(name, str) else name.decode("utf-8", "replace")
        return INSTANT if GA100.search(model) else AVERAGE
    return INSTANT
