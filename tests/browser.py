"""A real browser for the page tests: found, else installed, never skipped; and its fixtures.

`tests/conftest.py` imports the fixtures `browser`, `open_page`, `page` and `page_faults`.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
APT_PACKAGES = ("chromium", "fonts-noto-cjk")
NPM_PACKAGE = "@sparticuz/chromium@153.0.0"
CACHE = Path(sys.prefix) / "browser"
INSTALL_TIMEOUT_S = 600
FONTS_CONF = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <include ignore_missing="yes">/etc/fonts/fonts.conf</include>
  <dir>{fonts}</dir>
  <cachedir>{cache}</cachedir>
</fontconfig>
"""
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class NoBrowserError(Exception):
    """No browser was found and none could be installed; the message says what was tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundBrowser:
    executable: Path
    arguments: tuple[str, ...] = ARGUMENTS
    env: dict[str, str] = field(default_factory=dict)


def find_or_install() -> FoundBrowser:
    """CHROMIUM, else one on PATH, else apt (as root), else npm; raises NoBrowserError."""
    chosen = os.environ.get("CHROMIUM")
    if chosen:
        if not _runs(Path(chosen), {}):
            raise NoBrowserError(f"CHROMIUM is {chosen!r}, which does not run")
        return FoundBrowser(executable=Path(chosen))
    tried: list[str] = []
    CACHE.mkdir(exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for way in (_on_path, _by_apt, _by_npm):
            found = way(tried)
            if found is not None:
                return found
    raise NoBrowserError(
        "The page tests need Chromium and none was found or could be installed: "
        "run `sudo apt-get install chromium fonts-noto-cjk`, or install npm, "
        f"or set CHROMIUM=/path/to/chromium. Tried: {'; '.join(tried)}"
    )


def _runs(executable: Path, env: dict[str, str]) -> bool:
    """Whether it starts; Ubuntu's chromium-browser, for one, may only be a pointer to a snap."""
    try:
        command = [executable, "--version"]
        answer = subprocess.run(command, env=os.environ | env, capture_output=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0


def _on_path(tried: list[str]) -> FoundBrowser | None:
    for name in NAMES:
        executable = shutil.which(name)
        if executable and _runs(Path(executable), {}):
            return FoundBrowser(executable=Path(executable))
    tried.append("PATH has none")
    return None


def _by_apt(tried: list[str]) -> FoundBrowser | None:
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        tried.append("apt-get needs root")
        return None
    _install(["apt-get", "update", "-qq"], tried)
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *APT_PACKAGES]
    if not _install(install, tried):
        return None
    return _on_path(tried)


def _by_npm(tried: list[str]) -> FoundBrowser | None:
    """A Chromium with its own libraries, unpacked into the virtual environment; needs no root."""
    executable = CACHE / "chromium"
    if not executable.exists():
        if not shutil.which("npm"):
            tried.append("there is no npm")
            return None
        options = ["--no-audit", "--no-fund", "--ignore-scripts", "--no-save", "--omit=dev"]
        if not _install(["npm", "install", "--prefix", str(CACHE), *options, NPM_PACKAGE], tried):
            return None
        _unpack(CACHE / "node_modules" / "@sparticuz" / "chromium" / "bin")
    env = {
        "LD_LIBRARY_PATH": str(CACHE / "al2023"),
        "FONTCONFIG_FILE": str(CACHE / "fonts.conf"),
    }
    if not _runs(executable, env):
        tried.append(f"npm's Chromium does not run on this machine ({executable})")
        return None
    return FoundBrowser(executable=executable, arguments=(*ARGUMENTS, "--no-zygote"), env=env)


def _unpack(packed: Path) -> None:
    import brotli  # only needed here

    for name in ("al2023", "fonts"):
        content = brotli.decompress((packed / f"{name}.tar.br").read_bytes())
        with tarfile.open(fileobj=BytesIO(content)) as tar:
            for member in tar.getmembers():
                file = tar.extractfile(member)
                if file is not None:
                    target = CACHE / name / Path(member.name).name
                    target.parent.mkdir(exist_ok=True)
                    target.write_bytes(file.read())
    (CACHE / "fonts.conf").write_text(
        FONTS_CONF.format(fonts=CACHE / "fonts", cache=CACHE / "font-cache"), encoding="utf-8"
    )
    unfinished = CACHE / "chromium.unfinished"
    unfinished.write_bytes(brotli.decompress((packed / "chromium.br").read_bytes()))
    unfinished.chmod(0o755)
    unfinished.rename(CACHE / "chromium")


def _install(command: list[str], tried: list[str]) -> bool:
    env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    sys.stderr.write(f"\nInstalling a browser for the page tests: {' '.join(command)}\n")
    try:
        done = subprocess.run(
            command, env=env, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        tried.append(f"{command[0]} did not end within {INSTALL_TIMEOUT_S} s")
        return False
    if done.returncode:
        said = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        tried.append(f"{' '.join(command[:2])} failed: {said[-1] if said else 'it said nothing'}")
    return done.returncode == 0


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser process for the whole session."""
    try:
        found = find_or_install()
    except NoBrowserError as error:
        pytest.fail(str(error), pytrace=False)
    # Playwright's own event loop runs in this thread, so Django would refuse every query.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=found.executable,
            args=list(found.arguments),
            env={**os.environ, **found.env},
        )
        yield launched
        launched.close()


@pytest.fixture
def page_faults() -> list[str]:
    """What went wrong on this test's pages; a test that provokes a fault checks and clears it."""
    return []


@contextmanager
def watched_pages(
    browser: Browser, base_url: str, faults: list[str]
) -> Iterator[Callable[..., Page]]:
    """Opens pages in contexts of their own, e.g. `open_one(color_scheme="dark", locale="zh-CN")`.

    Any console error, script error, or request to another host than that of `base_url` is noted.
    """
    contexts = []
    own_host = urlsplit(base_url).netloc

    def open_one(**options: Any) -> Page:
        context = browser.new_context(
            **{"base_url": base_url, "locale": "en-US", "reduced_motion": "reduce", **options}
        )
        contexts.append(context)
        context.on("page", lambda page: _watch(page, own_host, faults))
        return context.new_page()

    yield open_one
    for context in contexts:
        context.close()


def _watch(page: Page, own_host: str, faults: list[str]) -> None:
    """Note what goes wrong on this page."""

    def note_request(url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme in {"http", "https", "ws", "wss"} and parts.netloc != own_host:
            faults.append(f"request to another host: {url}")

    def note_console(message: ConsoleMessage) -> None:
        if message.type == "error":
            faults.append(f"console error: {message.text} ({page.url})")

    page.on("request", lambda request: note_request(request.url))
    page.on("pageerror", lambda error: faults.append(f"script error: {error} ({page.url})"))
    page.on("console", note_console)


def fail_on(faults: list[str]) -> None:
    """Fail when anything was noted."""
    if faults:
        pytest.fail("The pages misbehaved:\n  " + "\n  ".join(faults), pytrace=False)


@pytest.fixture
def open_page(
    browser: Browser, live_server: Any, page_faults: list[str]
) -> Iterator[Callable[..., Page]]:
    """Open pages, each in a context of its own; the test fails on any fault of theirs."""
    with watched_pages(browser, live_server.url, page_faults) as open_one:
        yield open_one
    fail_on(page_faults)


@pytest.fixture
def page(open_page: Callable[..., Page]) -> Page:
    """One page with nobody signed in."""
    return open_page()
