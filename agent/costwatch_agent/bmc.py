"""The node's power as its BMC measures it: by ACPI's power meter, else by ipmitool; GPUs included.

The BMC measures at the power supplies, so the accelerators are in it, unless the operator says
that they have supplies of their own.
"""

import logging
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)
READING: Final = re.compile(r"Instantaneous power reading:\s*(\d+)\s*Watts", re.IGNORECASE)
IPMITOOL: Final = ("ipmitool", "dcmi", "power", "reading")
TIMEOUT_S: Final = 15.0
# A superchip's own meters, which measure a part of the node and not the node.
PARTS: Final = ("socket", "module", "grace", "cpu", "sysio")


def find_meter(sys_root: Path) -> Callable[[], float | None] | None:
    """How the node's power can be read here; None where it cannot."""
    for folder in sorted((sys_root / "class/hwmon").glob("hwmon*")):
        if _is_power_meter(folder):
            path = next(iter(folder.glob("power1_average")), folder / "device/power1_average")
            if _microwatt(path) is not None:
                log.info("BMC: ACPI's power meter (%s); GPUs included", folder.name)
                return lambda: _microwatt(path)
    if shutil.which(IPMITOOL[0]) and _ipmi_w() is not None:
        log.info("BMC: ipmitool dcmi power reading; GPUs included")
        return _ipmi_w
    return None


def _is_power_meter(folder: Path) -> bool:
    try:
        name = (folder / "name").read_text("ascii").strip()
    except OSError:
        return False
    if name not in {"power_meter", "acpi_power_meter"}:
        return False
    for place in (folder, folder / "device"):
        try:
            part = (place / "power1_oem_info").read_text("utf-8", "replace").lower()
        except OSError:
            continue
        if any(word in part for word in PARTS):
            log.info("%s measures a part of the node (%s): not read", folder.name, part.strip())
            return False
    return True


def _microwatt(path: Path) -> float | None:
    try:
        return int(path.read_text("ascii")) / 1e6
    except (OSError, ValueError):
        return None


def _ipmi_w() -> float | None:
    try:
        answer = subprocess.run(IPMITOOL, capture_output=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        log.warning("ipmitool: %s", error)
        return None
    found = READING.search(answer.stdout.decode("ascii", "replace"))
    return float(found[1]) if found and int(found[1]) > 0 else None


class BmcReader:
    """Asks the meter now and then on a thread of its own: a BMC can take seconds to answer."""

    def __init__(self, meter: Callable[[], float | None], *, period_s: float) -> None:
        self._meter = meter
        self._period_s = period_s
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._readings: list[tuple[int, float]] = []
        self._thread = threading.Thread(target=self._run, name="bmc", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def ask(self) -> None:
        """Read once, here and now."""
        power_w = self._meter()
        if power_w is not None:
            with self._lock:
                self._readings.append((int(time.time() * 1000), power_w))

    def take(self) -> list[tuple[int, float]]:
        """What was read since the last call: instants in milliseconds, watts."""
        with self._lock:
            taken, self._readings = self._readings, []
        return taken

    def _run(self) -> None:
        while True:
            self.ask()
            if self._stop.wait(self._period_s):
                return
