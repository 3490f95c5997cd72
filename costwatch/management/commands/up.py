"""`manage.py up`: web, worker and beat as one. What they do is theirs; here they start and stop."""

import http.client
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from costwatch.bind import BadBindError, Bind, parse_bind, require_free
from costwatch.demo import story
from costwatch.supervisor import supervise
from costwatch.web_command import web_command

READY = """
  Costwatch is ready:  {url}
"""
DEMO = """
  Sign in as           {user}
  with the password    {password}   (the demo's; its figures are invented)
  Then click           "{project}" to see its burn-down
"""
REACHABLE = """
  Others can reach {host}:{port}, and the demo's password is public: remove that user.
"""
STOP = """
  Ctrl-C stops everything.
"""
READY_TIMEOUT_S = 1.0
BELOW_THE_WEB = ("nice", "-n", "5")  # pages stay quick while a bill is read
# Six lines at every start for whoever chose to be root, in a container say.
ROOT_IS_MEANT = "ignore:You're running the worker with superuser privileges"


class Command(BaseCommand):
    help = "Run the web server, a worker and the scheduler until Ctrl-C."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--bind", metavar="HOST:PORT", default=settings.BIND)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            bind = parse_bind(options["bind"])
            require_free(bind)
        except BadBindError as error:
            raise CommandError(str(error)) from error
        status = supervise(
            _commands(bind), is_ready=lambda: _answers(bind), when_ready=_welcome(bind)
        )
        if status:
            sys.exit(status)


def _welcome(bind: Bind) -> str:
    """Name the demo's login only where `manage.py demo` makes one: on a machine of one's own."""
    demo = DEMO.format(
        user=story.DEMO_USERS[0].username,
        password=story.DEMO_PASSWORD,
        project=story.PROJECT_NAME,
    )
    parts = [READY.format(url=bind.local_url)]
    if settings.INSECURE_HTTP:
        parts.append(demo)
        if not bind.is_local:
            parts.append(REACHABLE.format(host=bind.host, port=bind.port))
    return "".join([*parts, STOP])


def _commands(bind: Bind) -> dict[str, list[str]]:
    celery = [*BELOW_THE_WEB, sys.executable, "-W", ROOT_IS_MEANT, "-m", "celery", "--quiet"]
    worker = ["worker", "--loglevel", "WARNING", "--without-mingle", "--without-gossip"]
    schedule = Path(settings.DATA_DIR) / "beat-schedule"
    beat = ["beat", "--loglevel", "WARNING", "--pidfile=", "-s", str(schedule)]
    return {
        "web": web_command(bind),
        "worker": [
            *(*celery, "-A", "costwatch", *worker),
            *("--concurrency", str(settings.WORKER_PROCESSES)),
        ],
        "beat": [*celery, "-A", "costwatch.beat", *beat],
    }


def _answers(bind: Bind) -> bool:
    connection = http.client.HTTPConnection(bind.local_host, bind.port, timeout=READY_TIMEOUT_S)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status < http.client.INTERNAL_SERVER_ERROR
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
