"""Kinds of jobs that the tests run: in this process, and in real workers."""

import os
import signal
import time
from pathlib import Path

from django.db import transaction

from jobs.records import JobContext, OutboxEvent, PermanentJobError

KINDS = {
    f"tests.{name}": f"tests.jobs.kinds:{name}"
    for name in (
        "count",
        "publish_after_pause",
        "kill_itself",
        "run_out_of_memory",
        "never_end",
        "raise_always",
        "raise_once",
        "give_up",
    )
}
TOPICS = {"tests.note": "tests.jobs.kinds:note_event", "tests.fail": "tests.jobs.kinds:fail_event"}


def count(context: JobContext) -> dict:
    """The plain job: counts rows, says how far it is."""
    rows = context.payload.get("rows", 3)
    for row in range(rows):
        context.report(row + 1, rows, "counting")
        time.sleep(context.payload.get("pause_s", 0))
    return {"rows": rows}


def publish_after_pause(context: JobContext) -> dict:
    """Publish one entry; the first attempt first waits long enough to be killed."""
    context.report(1, 2, "waiting")
    Path(context.payload["started"]).touch()
    if context.attempt == 1:
        time.sleep(context.payload["pause_s"])
    with transaction.atomic():
        context.assert_still_mine()
        note("published", context)
    return {"attempt": context.attempt}


def note(action: str, context: JobContext) -> None:
    from audit.services import record  # settings import this module before the tables are known

    record(
        organisation_id=context.organisation_id,
        actor_label="job",
        action=action,
        object_type="job",
        object_id=str(context.job_id),
        before=None,
        after={"attempt": context.attempt},
    )


def kill_itself(context: JobContext) -> dict:
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def run_out_of_memory(context: JobContext) -> dict:
    raise MemoryError


def never_end(context: JobContext) -> dict:
    while True:
        pass


def raise_always(context: JobContext) -> dict:
    raise RuntimeError("the disk is on fire\nand more than one line")


def raise_once(context: JobContext) -> dict:
    if context.attempt == 1:
        raise RuntimeError("not yet")
    return {"attempt": context.attempt}


def give_up(context: JobContext) -> dict:
    raise PermanentJobError("bill.csv, row 7, column BilledCost: 'abc' is not a number")


def note_event(event: OutboxEvent) -> None:
    """Deliver by appending the event's id to a file; die after that if asked to."""
    with Path(event.payload["file"]).open("a") as file:
        file.write(f"{event.event_id}\n")
    if event.payload.get("die_after") and not Path(event.payload["died"]).exists():
        Path(event.payload["died"]).touch()
        os.kill(os.getpid(), signal.SIGKILL)


def fail_event(event: OutboxEvent) -> None:
    raise ConnectionError("the mail server is away")
