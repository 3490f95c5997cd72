"""manage.py pull_charges: pull a source now and import what is new, in this process."""

import time
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from billing.models import Delivery, Pull, Source
from billing.services import ask_for_pull
from jobs.records import JobState
from jobs.selectors import job_progress
from jobs.services import ring_waiting, run_job
from projects.access import system_actor
from projects.chosen_organisation import chosen_organisation
from ui.console import JsonCommand

LOOK_AGAIN_S = 0.5


class Command(JsonCommand):
    help = "Pull the bills of a connected source now, and import what is new."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--source", required=True, metavar="NAME")

    def handle(self, *args: Any, **options: Any) -> None:
        organisation = chosen_organisation(options["organisation"])
        source = Source.objects.filter(
            organisation_id=organisation.pk, name=options["source"]
        ).first()
        if source is None:
            raise CommandError(f"There is no source named {options['source']}.")
        actor = system_actor(organisation.pk, "manage.py pull_charges")
        try:
            job_id = ask_for_pull(source, actor)
        except ValidationError as error:
            raise CommandError("; ".join(error.messages)) from error
        failure = _finish(job_id, organisation.pk)
        pull = Pull.objects.filter(source=source, job_id=job_id).first()
        if pull is None:
            raise CommandError(f"The pull did not start. {failure}")
        deliveries = _import(pull)
        self.emit(_document(source, pull, deliveries), _in_words(source, pull, deliveries))
        _complain(pull, deliveries, failure)


def _finish(job_id: UUID, organisation_id: UUID) -> str:
    """Do the job here, or wait for the worker that was faster; return its error, if any."""
    while True:
        run_job(job_id, holder="pull_charges")
        ring_waiting()
        progress = job_progress(job_id, organisation_id)
        if progress.is_over:
            return progress.error if progress.state == JobState.FAILED else ""
        time.sleep(LOOK_AGAIN_S)


def _import(pull: Pull) -> list[Delivery]:
    """Import what the pull handed in."""
    ids = [unit["delivery_id"] for unit in pull.report.get("units", [])]
    for delivery in Delivery.objects.filter(pk__in=ids, state=Delivery.State.RECEIVED):
        if delivery.job_id is not None:
            _finish(delivery.job_id, delivery.organisation_id)
    return list(Delivery.objects.filter(pk__in=ids).order_by("received_at"))


def _document(source: Source, pull: Pull, deliveries: list[Delivery]) -> dict[str, Any]:
    periods = {unit["delivery_id"]: unit["period"] for unit in pull.report.get("units", [])}
    return {
        "source": source.name,
        "state": pull.state,
        "objects_listed": pull.objects_listed,
        "objects_fetched": pull.objects_fetched,
        "bytes_fetched": pull.bytes_fetched,
        "known_units": pull.report.get("known"),
        "deliveries": [
            {
                "id": one.pk,
                "state": one.state,
                "period": periods.get(str(one.pk)),
                "rows": one.rows,
                "totals": one.totals,
            }
            for one in deliveries
        ],
        "problems": pull.report.get("problems", []),
        "error": pull.error,
    }


def _in_words(source: Source, pull: Pull, deliveries: list[Delivery]) -> str:
    lines = [
        f"{source.name}: {pull.get_state_display()}; {pull.objects_fetched} objects, "
        f"{pull.bytes_fetched} bytes"
    ]
    lines += [
        f"  {one.origin.get('unit', one.pk)}: {one.rows} rows, {one.get_state_display()}"
        for one in deliveries
    ]
    return "\n".join(lines)


def _complain(pull: Pull, deliveries: list[Delivery], failure: str) -> None:
    """End with an error where something is not in."""
    if pull.state == Pull.State.FAILED:
        raise CommandError(f"Nothing more was pulled. {failure}")
    problems = [
        " ".join(part for part in (one["object"] or one["key"], one["message"]) if part)
        for one in pull.report.get("problems", [])
    ]
    waiting = [one for one in deliveries if one.state == Delivery.State.NEEDS_CONFIRMATION]
    refused = [one for one in deliveries if one.state == Delivery.State.REFUSED]
    problems += [
        f"{one.origin.get('unit', one.pk)}: a month would shrink; confirm it on its page"
        for one in waiting
    ]
    problems += [
        f"{one.origin.get('unit', one.pk)}: {(one.refusal or {}).get('reason', 'refused')}"
        for one in refused
    ]
    if problems:
        raise CommandError("Not everything is in: " + "; ".join(problems))
