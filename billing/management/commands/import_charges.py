"""manage.py import_charges: import bill files now, in this process, by the pages' job."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from billing.adapters import AUTO, FORMATS
from billing.documents import import_document, is_in_force
from billing.models import Delivery
from billing.records import ChargesRefusedError
from billing.selectors import delivery_by_id
from billing.services import IncomingFile, NewDelivery, Receipt, receive_files
from jobs.selectors import job_progress
from jobs.services import ring_waiting, run_job
from projects.access import system_actor
from projects.chosen_organisation import chosen_organisation
from projects.records import Actor
from ui.console import JsonCommand

CHUNK_BYTES = 2**20
LOOK_AGAIN_S = 0.5
MOST_FILES = 10_000


class Command(JsonCommand):
    help = (
        "Import bill files (CSV, plain or packed by gzip, zstd or zip, or Parquet), or a folder of "
        "parts with its manifest, from a source; new sources are made."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("files", nargs="+", metavar="FILE|FOLDER")
        parser.add_argument("--source", required=True, metavar="NAME")
        parser.add_argument("--format", choices=FORMATS, default=AUTO)
        parser.add_argument(
            "--period",
            action="append",
            default=[],
            metavar="YYYY-MM",
            help="a billing month that the files replace whole; default: every month of which they "
            "hold more than a few rows",
        )
        parser.add_argument(
            "--add",
            action="store_true",
            help="the files are a further part of an export: add their rows, replace no month",
        )
        parser.add_argument(
            "--again",
            action="store_true",
            help="publish bytes that were imported before once more, where others replaced them",
        )
        parser.add_argument(
            "--confirm-shrink",
            action="store_true",
            help="publish even if a published month then holds fewer rows",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        organisation = chosen_organisation(options["organisation"])
        actor = system_actor(organisation.pk, "manage.py import_charges")
        receipt = _receive(actor, options)
        error = _finish(receipt.job_id, organisation.pk)
        delivery = delivery_by_id(organisation.pk, receipt.delivery_id)
        if delivery is None:
            raise CommandError("The delivery is gone; was it removed meanwhile?")
        document = import_document(delivery, already_imported=receipt.already_imported)
        self.emit(document, _in_words(delivery, receipt))
        _complain(delivery, error)


def _receive(actor: Actor, options: dict[str, Any]) -> Receipt:
    paths = [found for name in options["files"] for found in _files_of(Path(name))]
    wish = NewDelivery(
        source_name=options["source"],
        files=[IncomingFile(name=name, chunks=_chunks(path)) for name, path in paths],
        periods=options["period"],
        bill_format=options["format"],
        confirm_shrink=options["confirm_shrink"],
        adds=options["add"],
        again=options["again"],
    )
    try:
        return receive_files(actor, wish)
    except ChargesRefusedError as refusal:
        raise CommandError(refusal.sentence) from refusal
    except ValidationError as error:
        raise CommandError("; ".join(error.messages)) from error


def _files_of(path: Path) -> list[tuple[str, Path]]:
    """The file, or every file of the folder, under the name that a manifest may know it by."""
    if path.is_file():
        return [(path.name, path)]
    if not path.is_dir():
        raise CommandError(f"{path}: there is no such file or folder")
    found = sorted(
        one
        for one in path.rglob("*")
        if one.is_file()
        and not one.is_symlink()
        and not any(part.startswith(".") for part in one.relative_to(path).parts)
    )
    if not found:
        raise CommandError(f"{path}: the folder holds no file")
    if len(found) > MOST_FILES:
        raise CommandError(f"{path}: the folder holds more than {MOST_FILES} files")
    return [(one.relative_to(path).as_posix(), one) for one in found]


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk


def _finish(job_id: UUID, organisation_id: UUID) -> str:
    """Do the job here, or wait for the worker that was faster; return its error, if any."""
    while True:
        run_job(job_id, holder="import_charges")
        ring_waiting()  # ends the attempt of a worker that was killed
        progress = job_progress(job_id, organisation_id)
        if progress.is_over:
            return progress.error
        time.sleep(LOOK_AGAIN_S)


def _complain(delivery: Delivery, error: str) -> None:
    """End with an error where the charges are not published."""
    if delivery.state == Delivery.State.NEEDS_CONFIRMATION:
        months = "; ".join(
            f"{item['period']} would go from {item['rows_before']} to {item['rows']} rows"
            + (f" and lose the days {', '.join(item['days_lost'])}" if "days_lost" in item else "")
            for item in delivery.report.get("shrinking", [])
        )
        raise CommandError(
            f"Not published: {months}. If that is right, add --confirm-shrink; "
            "if the files are a further part of the month, say --add."
        )
    if delivery.state != Delivery.State.PUBLISHED:
        raise CommandError(f"Nothing imported. {error}")


def _in_words(delivery: Delivery, receipt: Receipt) -> str:
    report = delivery.report
    head = f"{delivery.source.name}: {delivery.rows} rows, {delivery.get_state_display()}"
    if receipt.already_imported:
        head += " (these bytes were imported before: nothing new)"
        if is_in_force(delivery) is False:
            head += "\n  CAREFUL: other deliveries have replaced them since; --again puts them back"
    lines = [head] if delivery.rows is not None else []
    lines += [
        f"  {entry['currency']}: billed {entry['billed_cost'] or 'n/a'},"
        f" effective {entry['effective_cost'] or 'n/a'}"
        for entry in delivery.totals
    ]
    if periods := report.get("periods"):
        lines.append(
            "  months: " + ", ".join(f"{one['period']} ({one['rows']})" for one in periods)
        )
    if twins := report.get("also_from"):
        lines.append(
            "  CAREFUL: the same bytes are published from "
            + ", ".join(twins)
            + ": they count twice"
        )
    if unknown := report.get("unknown_columns"):
        lines.append("  unknown columns, kept: " + ", ".join(unknown))
    return "\n".join(lines)
