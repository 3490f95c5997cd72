"""Where the embedded servers' data and sockets live, and who owns them. Starts nothing."""

import fcntl
import hashlib
import os
import pwd
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from costwatch.processes import LauncherError, Owner, raise_if_stopped

SERVER_UID = 65534  # "nobody": PostgreSQL refuses to run as root
SYSTEM_FOLDER = Path("/var/lib/costwatch")
TEMPORARY_FOLDER = Path("/tmp")  # noqa: S108 mkdtemp below; a socket path has at most 107 bytes
RUN_PREFIX = "cw-"
DATA_LOCK = "launcher.lock"
RUN_LOCK = "costwatch-run.lock"
STALE_AFTER_S = 60.0
CHOOSE_ANOTHER = "choose another data folder, `make run DATA=/path`"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFolders:
    """Folders on disk of one set of servers; `application` is for the command's own files."""

    postgres: Path
    redis: Path
    log: Path
    application: Path
    durable: bool


def server_owner() -> Owner | None:
    if os.geteuid() != 0:
        try:
            pwd.getpwuid(os.geteuid())
        except KeyError:
            raise LauncherError(
                f"User id {os.geteuid()} has no entry in /etc/passwd, which PostgreSQL insists on: "
                "add one, or set DATABASE_URL and REDIS_URL to your own servers."
            ) from None
        return None
    try:
        return Owner(uid=SERVER_UID, gid=pwd.getpwuid(SERVER_UID).pw_gid)
    except KeyError:
        raise LauncherError(
            "PostgreSQL refuses to run as root, and there is no user "
            f"{SERVER_UID} (nobody) here: run as an ordinary user."
        ) from None


def reachable_by(owner: Owner | None, path: Path, *, mode: int = os.X_OK) -> bool:
    """Whether that user may use `path`, as tried by a short-lived child that becomes that user."""
    if owner is None:
        return os.access(path, mode)
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setgid(owner.gid)
            os.setuid(owner.uid)
            os._exit(0 if os.access(path, mode) else 1)
        except OSError:
            os._exit(2)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code == 2:
        raise LauncherError(
            "PostgreSQL refuses to run as root, and root may not switch users here (CAP_SETUID): "
            "run as an ordinary user, or set DATABASE_URL and REDIS_URL to your own servers."
        )
    return code == 0


def system_folder_is_ours() -> bool:
    """Whether SYSTEM_FOLDER is there, writable, and safe from other users planting things."""
    try:
        SYSTEM_FOLDER.mkdir(mode=0o755, exist_ok=True)
        status = SYSTEM_FOLDER.lstat()
    except OSError:
        return False
    return status.st_uid == 0 and not status.st_mode & 0o022 and os.access(SYSTEM_FOLDER, os.W_OK)


@contextmanager
def run_folder(owner: Owner | None) -> Iterator[Path]:
    """A short-named folder in /tmp for sockets and throw-away data, removed at the end."""
    _remove_stale_run_folders()
    try:
        folder = Path(tempfile.mkdtemp(prefix=RUN_PREFIX, dir=TEMPORARY_FOLDER))
    except OSError as error:
        raise LauncherError(
            f"Cannot make a folder in /tmp for the servers' sockets: {error.strerror}."
        ) from error
    try:
        if owner:
            folder.chmod(0o711)
        with (folder / RUN_LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            make_folder(folder / "s", owner=owner)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_stale_run_folders() -> None:
    """Folders of launchers that were killed together with their guard."""
    for lock_path in TEMPORARY_FOLDER.glob(f"{RUN_PREFIX}*/{RUN_LOCK}"):
        try:
            status = lock_path.lstat()
            if status.st_uid != os.geteuid() or time.time() - status.st_mtime < STALE_AFTER_S:
                continue
            with lock_path.open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(lock_path.parent, ignore_errors=True)
        except OSError:
            continue  # in use, or gone already


def make_folder(path: Path, *, owner: Owner | None, mode: int = 0o700) -> Path:
    """`path` as a folder of `owner`; says what to do where that cannot be."""
    try:
        if not path.exists():
            path.mkdir(mode=mode, parents=True)
            path.chmod(mode)
            if owner:
                os.chown(path, owner.uid, owner.gid)
    except OSError as error:
        raise LauncherError(
            f"Cannot write the data folder {path} ({error.strerror}): make it writable "
            f"or {CHOOSE_ANOTHER}."
        ) from error
    uid = path.stat().st_uid
    if uid != (owner.uid if owner else os.geteuid()):
        raise LauncherError(
            f"The data in {path} belongs to user {_user_name(uid)}: run as that user "
            f"or {CHOOSE_ANOTHER}."
        )
    return path


def _user_name(uid: int) -> str:
    if uid == SERVER_UID:
        return "root"  # the servers' files of a run by root
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def throw_away_folders(run: Path, owner: Owner | None) -> DataFolders:
    return DataFolders(
        postgres=make_folder(run / "pg", owner=owner),
        redis=make_folder(run / "redis", owner=owner),
        log=make_folder(run / "log", owner=None),
        application=make_folder(run / "data", owner=None),
        durable=False,
    )


def durable_folders(data: Path, owner: Owner | None) -> DataFolders:
    """`data` itself, or a folder of the system's where the servers' user cannot reach `data`."""
    if not data.exists():
        make_folder(data, owner=None, mode=0o711 if owner else 0o700)
    if not data.is_dir() or not os.access(data, os.W_OK | os.X_OK):
        raise LauncherError(
            f"Cannot write the data folder {data}: make it writable, "
            f"`sudo chown -R $(id -u) {data}`, or {CHOOSE_ANOTHER}."
        )
    base = data if reachable_by(owner, data) else _system_data_folder(data)
    return DataFolders(
        postgres=make_folder(base / "postgres", owner=owner),
        redis=make_folder(base / "redis", owner=owner),
        log=make_folder(data / "log", owner=None),
        application=data,
        durable=True,
    )


def _system_data_folder(data: Path) -> Path:
    if not system_folder_is_ours():
        raise LauncherError(
            f"User {SERVER_UID}, whom the servers run as, can reach neither {data} "
            f"nor {SYSTEM_FOLDER}: {CHOOSE_ANOTHER}."
        )
    base = SYSTEM_FOLDER / hashlib.sha256(os.fsencode(data)).hexdigest()[:12]
    base.mkdir(mode=0o711, exist_ok=True)
    base.chmod(0o711)
    (base / "belongs-to").write_text(f"{data}\n")
    return base


@contextmanager
def exclusive_use(data: Path) -> Iterator[None]:
    """Only one launcher works on `data`; one that is just stopping is waited for."""
    try:
        lock = os.fdopen(os.open(data / DATA_LOCK, os.O_RDWR | os.O_CREAT, 0o600), "r+")
    except OSError as error:
        raise LauncherError(
            f"Cannot write {data / DATA_LOCK} ({error.strerror}): run as the folder's owner "
            f"or {CHOOSE_ANOTHER}."
        ) from error
    with lock:
        _take(lock.fileno(), data, deadline=time.monotonic() + 30)
        _note(lock.fileno(), f"starting {os.getppid()} -\n")
        try:
            yield
        finally:
            _note(lock.fileno(), "stopped\n")


def note_running(data: Path, *, sockets: Path) -> None:
    """Tell whoever wants to join us where the servers answer."""
    with (data / DATA_LOCK).open("r+") as lock:
        _note(lock.fileno(), f"running {os.getppid()} {sockets}\n")


def note_stopping(data: Path) -> None:
    """Tell a launcher that comes now to wait for us."""
    with (data / DATA_LOCK).open("r+") as lock:
        _note(lock.fileno(), "stopping\n")


def running_sockets(data: Path) -> Path | None:
    """The sockets of the launcher that works on `data` now, if one does."""
    try:
        with (data / DATA_LOCK).open("r+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                state, _, sockets = lock.read().strip().split(" ", 2)
                return Path(sockets) if state == "running" else None
    except (OSError, ValueError):
        return None
    return None


def _take(lock: int, data: Path, *, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            note = os.pread(lock, 100, 0).decode().split()
            if "stopping" not in note[:1] or time.monotonic() > deadline:
                holder = f" (process {note[1]})" if len(note) > 1 else ""
                raise LauncherError(
                    f"Costwatch already runs on {data}{holder}: stop it first or {CHOOSE_ANOTHER}."
                ) from None
            raise_if_stopped()
            time.sleep(0.05)


def _note(lock: int, text: str) -> None:
    os.ftruncate(lock, 0)
    os.pwrite(lock, text.encode(), 0)
