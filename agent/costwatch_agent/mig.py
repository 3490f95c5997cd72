"""The MIG instances of a device: listed with their share, never metered, for NVML has no meter."""

import contextlib
import re
from typing import Any, Final

import pynvml

from costwatch_agent.records import MigInstance

PROFILE: Final = re.compile(r"\bMIG\s+(\S+)")
SLICES: Final = re.compile(r"(?:\d+c\.)?(\d+)g\.")
MOST_SLICES: Final = 7  # compute slices of a device that is split


def mig_instances(handle: Any) -> tuple[tuple[MigInstance, ...] | None, list[Any]]:
    """A device's instances and their handles; None where MIG is off or unknown."""
    try:
        is_on = pynvml.nvmlDeviceGetMigMode(handle)[0] == 1
        if not is_on:
            return None, []
        places = pynvml.nvmlDeviceGetMaxMigDeviceCount(handle)
    except pynvml.NVMLError:
        return None, []
    all_sms = _all_sms(handle)
    instances = []
    handles = []
    for place in range(places):
        with contextlib.suppress(pynvml.NVMLError):  # an empty place
            instance = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, place)
            instances.append(_instance(instance, all_sms))
            handles.append(instance)
    return tuple(instances), handles


def _instance(handle: Any, all_sms: int | None) -> MigInstance:
    uuid = pynvml.nvmlDeviceGetUUID(handle)
    name = pynvml.nvmlDeviceGetName(handle)
    found = PROFILE.search(name if isinstance(name, str) else name.decode("utf-8", "replace"))
    profile = found[1] if found else ""
    return MigInstance(
        uuid=uuid if isinstance(uuid, str) else uuid.decode("ascii", "replace"),
        profile=profile,
        sm_fraction=_sm_fraction(handle, profile=profile, all_sms=all_sms),
    )


def _sm_fraction(handle: Any, *, profile: str, all_sms: int | None) -> float | None:
    """The instance's SMs over the device's; by the profile's name where NVML does not count."""
    if all_sms:
        with contextlib.suppress(pynvml.NVMLError):
            sms = int(pynvml.nvmlDeviceGetAttributes(handle).multiprocessorCount)
            return round(sms / all_sms, 4)
    slices = SLICES.match(profile)
    return round(int(slices[1]) / MOST_SLICES, 4) if slices else None


def _all_sms(handle: Any) -> int | None:
    """The SMs of the largest instance: those of the device that instances can have."""
    whole = pynvml.NVML_GPU_INSTANCE_PROFILE_7_SLICE
    for version in (2, 1):
        with contextlib.suppress(pynvml.NVMLError, TypeError):
            info = pynvml.nvmlDeviceGetGpuInstanceProfileInfo(handle, whole, version)
            return int(info.multiprocessorCount) or None
    return None
