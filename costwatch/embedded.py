"""Runs one command with a PostgreSQL and a Redis of its own, and stops both after it.

    python -m costwatch.embedded [--test] [--data DIR [--join]] [--with-parent] -- COMMAND...

Two processes, so that nothing outlives the run: the launcher, which a person sees and may kill, and
its guard, which starts the servers and the command. The guard gets SIGTERM when the launcher dies,
the servers and the command get theirs when the guard dies, and both adopt and end whatever the
command leaves behind. Imports no Django.
"""

import argparse
import os
import signal
import sys
from contextlib import ExitStack
from pathlib import Path

from costwatch import embedded_binaries as binaries
from costwatch import embedded_places as places
from costwatch import embedded_servers as servers
from costwatch import processes
from costwatch.processes import LauncherError, StoppedError

COMMAND_GRACE_S = 20.0


def main(arguments: list[str] | None = None) -> int:
    options = _parse(sys.argv[1:] if arguments is None else arguments)
    if sys.platform != "linux":
        _say("The embedded servers need Linux: set DATABASE_URL and REDIS_URL to your own servers.")
        return 1
    if options.join and options.data:
        sockets = places.running_sockets(_resolved(options.data))
        if sockets is not None:
            return _join(options.command, sockets=sockets, data=_resolved(options.data))
    processes.block_stop_signals()
    processes.adopt_orphans()
    if options.with_parent:
        processes.die_with_parent(signal.SIGTERM, os.getppid())
    launcher_pid = os.getpid()
    terminal = processes.Terminal()
    guard_pid = os.fork()
    if guard_pid == 0:
        processes.adopt_orphans()
        processes.die_with_parent(signal.SIGTERM, launcher_pid)
        os._exit(_guard(options))

    def pass_hang_up_on() -> None:
        if terminal.has_gone() and signal.SIGHUP in processes.stop_signals():
            os.kill(guard_pid, signal.SIGHUP)

    try:
        return processes.wait_forwarding(guard_pid, processes.Waiting(check=pass_hang_up_on))
    finally:
        processes.end_descendants()


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m costwatch.embedded", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="keep the data in DIR; without it, it is thrown away",
    )
    parser.add_argument(
        "--join", action="store_true", help="use the servers that run on DIR already, if they do"
    )
    parser.add_argument("--test", action="store_true", help="throw-away data, whatever --data says")
    parser.add_argument(
        "--with-parent", action="store_true", help="stop when whoever started this ends"
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND...")
    options = parser.parse_args(arguments)
    if options.command[:1] == ["--"]:
        del options.command[0]
    if not options.command:
        parser.error("say which command to run, after `--`")
    return options


def _resolved(data: Path) -> Path:
    return data.expanduser().absolute().resolve()


def _join(command: list[str], *, sockets: Path, data: Path) -> int:
    """Become the command, with the servers of another launcher."""
    os.environ |= servers.urls(sockets) | {"COSTWATCH_DATA_DIR": str(data)}
    try:
        os.execvp(command[0], command)  # noqa: S606 no shell is meant
    except OSError as error:
        _say(_cannot_run(command[0], error))
    return 1


def _cannot_run(program: str, error: OSError) -> str:
    return f"Cannot run {program}: {error.strerror}."


def _guard(options: argparse.Namespace) -> int:
    """The guard's whole life; it never raises, because there is nobody above to catch."""
    try:
        return _run(options)
    except LauncherError as error:
        _say(str(error))
        return 1
    except StoppedError as stopped:
        return 128 + stopped.signal_number
    except OSError as error:
        _say(f"The embedded servers could not be started: {error}")
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _run(options: argparse.Namespace) -> int:
    owner = places.server_owner()
    with ExitStack() as stack:
        run = stack.enter_context(places.run_folder(owner))
        folders = _folders(options, stack, run, owner)
        place = servers.Place(
            binaries=binaries.find_binaries(owner, run),
            folders=folders,
            sockets=run / "s",
            owner=owner,
        )
        running = stack.enter_context(servers.both_servers(place))
        try:
            return _run_command(options.command, running)
        finally:
            processes.end_descendants(except_below=running.pids)


def _folders(
    options: argparse.Namespace, stack: ExitStack, run: Path, owner: processes.Owner | None
) -> places.DataFolders:
    if options.test or options.data is None:
        return places.throw_away_folders(run, owner)
    data = _resolved(options.data)
    folders = places.durable_folders(data, owner)
    if folders.postgres.parent != data:
        place = folders.postgres.parent
        _say(f"{data} is out of reach for the servers' user, so the database is in {place}.")
    stack.enter_context(places.exclusive_use(data))
    return folders


def _run_command(command: list[str], running: servers.Servers) -> int:
    place = running.place
    env = os.environ | servers.urls(place.sockets)
    if place.folders.durable:
        env["COSTWATCH_DATA_DIR"] = str(place.folders.application)
        places.note_running(place.folders.application, sockets=place.sockets)
    else:
        env.setdefault("COSTWATCH_DATA_DIR", str(place.folders.application))
    processes.raise_if_stopped()
    try:
        child = processes.start_command(command, env=env)
    except OSError as error:
        raise LauncherError(_cannot_run(command[0], error)) from error

    def note_stopping() -> None:
        if place.folders.durable:
            places.note_stopping(place.folders.application)

    how = processes.Waiting(
        kill_after_s=COMMAND_GRACE_S, on_stop=note_stopping, check=running.check
    )
    try:
        return processes.wait_forwarding(child.pid, how)
    finally:
        note_stopping()


def _say(line: str) -> None:
    sys.stderr.write(f"costwatch: {line}\n")


if __name__ == "__main__":
    sys.exit(main())
