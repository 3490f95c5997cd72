"""Whose work a device does: from its processes' environment and control groups; no NVML here.

Of a process only these are looked at: its control group, the variables named below, the instant it
began. Command lines, users and files are not.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from costwatch_agent.records import JobNote

NOTE_EVERY_MS: Final = 60_000  # a job that stays is noted once a minute
MAX_ENVIRONMENT_BYTES: Final = 256 * 1024
MAX_TEXT: Final = 200
SLURM_GROUP: Final = re.compile(r"slurm[^\n]*?/job_(\d+)(?:/|$)", re.MULTILINE)
POD_GROUP: Final = re.compile(r"pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12})")
RUN: Final = re.compile(r"[\w.-]{1,100}/[\w.-]{1,99}")
WANTED: Final = frozenset(
    {"COSTWATCH_RUN", "COSTWATCH_PROJECT", "SLURM_JOB_ID", "POD_NAME", "POD_NAMESPACE"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The job that a process belongs to."""

    kind: str
    job: str
    run: str = ""


def owner_of(pid: int, *, environment: Mapping[str, str], groups: str) -> Owner:
    """The job by the kernel's control groups first, for a process may write what it likes into
    its environment; then by its environment; else the process itself.
    """
    run = _run(environment)
    if found := SLURM_GROUP.search(groups):
        return Owner(kind="slurm", job=found[1], run=run)
    if found := POD_GROUP.search(groups):
        name, namespace = environment.get("POD_NAME", ""), environment.get("POD_NAMESPACE", "")
        job = f"{namespace}/{name}" if name and namespace else found[1].replace("_", "-")
        return Owner(kind="kubernetes", job=job[:MAX_TEXT], run=run)
    if environment.get("SLURM_JOB_ID", "").isdecimal():
        return Owner(kind="slurm", job=environment["SLURM_JOB_ID"][:MAX_TEXT], run=run)
    if run:
        return Owner(kind="environment", job=run, run=run)
    return Owner(kind="process", job=str(pid))


def _run(environment: Mapping[str, str]) -> str:
    """project/run: COSTWATCH_RUN alone, or COSTWATCH_PROJECT before it, as labels cannot hold /."""
    run = environment.get("COSTWATCH_RUN", "")
    project = environment.get("COSTWATCH_PROJECT", "")
    if project and "/" not in run:
        run = f"{project}/{run}"
    return run if RUN.fullmatch(run) else ""


class JobFinder:
    """The jobs on the node's devices, remembered between ticks."""

    def __init__(self, proc: Path, notes: Path | None) -> None:
        self._proc = proc
        self._notes = notes
        self._known: dict[int, tuple[str, Owner]] = {}  # by process: when it began, its job

    def owners(
        self, pids: Sequence[Sequence[int]], uuids: Sequence[str], indexes: Sequence[int]
    ) -> list[set[Owner]]:
        """The jobs of each device, from its processes and from what Slurm's prolog noted."""
        found: list[set[Owner]] = [set() for _ in uuids]
        known = {}
        for device, processes in enumerate(pids):
            for pid in processes:
                remembered = self._owner(pid)
                if remembered is not None:
                    known[pid] = remembered
                    found[device].add(remembered[1])
        self._known = known
        for device, owner in self._noted(uuids, indexes):
            same = {other for other in found[device] if other.job == owner.job}
            found[device] = {other for other in found[device] if other.kind != "process"}
            if not same:
                found[device].add(owner)
        return found

    def _owner(self, pid: int) -> tuple[str, Owner] | None:
        folder = self._proc / str(pid)
        try:
            # After the name in brackets, which may hold anything: the 22nd field is the start.
            started = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()[19]
        except (OSError, IndexError):
            return None
        remembered = self._known.get(pid)
        if remembered is not None and remembered[0] == started:
            return remembered
        owner = owner_of(pid, environment=_environment(folder), groups=_groups(folder))
        return started, owner

    def _noted(self, uuids: Sequence[str], indexes: Sequence[int]) -> list[tuple[int, Owner]]:
        """Allocations that the prolog wrote down: a file for each job, named by it."""
        found: list[tuple[int, Owner]] = []
        try:
            paths = sorted(self._notes.iterdir()) if self._notes is not None else []
        except OSError:
            return []
        for path in paths:
            if not path.name.isdecimal():
                continue
            try:
                lines = path.read_text("utf-8", "replace").splitlines()
            except OSError:
                continue  # the epilog was faster
            said = dict(line.split("=", 1) for line in lines if "=" in line)
            run = _run({"COSTWATCH_RUN": said.get("RUN", "").strip()})
            owner = Owner(kind="slurm", job=path.name[:MAX_TEXT], run=run)
            for gpu in re.split(r"[,\s]+", said.get("GPUS", "").strip()):
                if gpu in uuids:
                    found.append((uuids.index(gpu), owner))
                elif gpu.isdecimal() and int(gpu) in indexes:
                    found.append((list(indexes).index(int(gpu)), owner))
        return found


def _environment(folder: Path) -> dict[str, str]:
    """The wanted variables of a process; none where the agent may not read them."""
    try:
        with (folder / "environ").open("rb") as file:
            data = file.read(MAX_ENVIRONMENT_BYTES)
    except OSError:
        return {}
    pairs = (entry.partition("=") for entry in data.decode("utf-8", "replace").split("\0"))
    return {name: value for name, _, value in pairs if name in WANTED}


def _groups(folder: Path) -> str:
    try:
        return (folder / "cgroup").read_text("utf-8", "replace")
    except OSError:
        return ""


@dataclass(slots=True)
class _Sighting:
    seen_ms: int
    noted_ms: int


class JobNotes:
    """What of the jobs is told: each at its first and last sight, and once a minute between."""

    def __init__(self) -> None:
        self._sightings: dict[tuple[str, Owner], _Sighting] = {}

    def note(
        self, owners: Sequence[set[Owner]], uuids: Sequence[str], at_ms: int
    ) -> tuple[JobNote, ...]:
        """The notes of this tick."""
        notes = []
        now = {(uuids[device], owner) for device, found in enumerate(owners) for owner in found}
        for key in sorted(now, key=repr):
            known = self._sightings.get(key)
            if known is None:
                known = self._sightings[key] = _Sighting(at_ms, -NOTE_EVERY_MS)
            known.seen_ms = at_ms
            if not 0 <= at_ms - known.noted_ms < NOTE_EVERY_MS:
                notes.append(_note(key, uuids, known))
        for key in [key for key in self._sightings if key not in now]:
            gone = self._sightings.pop(key)
            if gone.seen_ms > gone.noted_ms and key[0] in uuids:
                notes.append(_note(key, uuids, gone))
        return tuple(notes)


def _note(key: tuple[str, Owner], uuids: Sequence[str], sighting: _Sighting) -> JobNote:
    sighting.noted_ms = sighting.seen_ms
    uuid, owner = key
    return JobNote(
        device=list(uuids).index(uuid),
        kind=owner.kind,
        job=owner.job,
        run=owner.run,
        at_ms=sighting.seen_ms,
    )
