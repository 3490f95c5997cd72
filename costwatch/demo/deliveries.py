"""Hands the demo's files and reports in at the doors of real data, and waits for their jobs."""

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from subprocess import PIPE

from django.conf import settings
from django.db import transaction

from billing.invoice_selectors import reconciliations
from billing.selectors import sources as billing_sources
from billing.services import IncomingFile, NewDelivery, receive_files
from billing.services.invoices import TotalWish, state_total
from carbon.services import import_power
from costwatch.demo import skus, story
from costwatch.demo.focus import BillFile
from costwatch.demo.inline_jobs import finish_job
from costwatch.demo.ledger import ChargeLedger
from costwatch.demo.power import PowerFile
from costwatch.demo.progress import SOURCE, RunOfStory, by_day
from projects.access import project_for
from projects.records import Actor
from runs.progress import record_progress
from runs.progress_selectors import tokens_by
from runs.progress_summing import sum_stale_days
from runs.selectors import run_by_slug

CENT = Decimal("0.01")
SCRATCH_PREFIX = "costwatch-demo-"
SOURCE_OF_PROVIDER = {skus.AWS: story.AWS_SOURCE, skus.GCP: story.GCP_SOURCE}


class PowerDeliveryError(RuntimeError):
    """The power could not be delivered; the message is that of the import."""


def deliver_bills(actor: Actor, files: Sequence[BillFile]) -> None:
    """One delivery for each provider, which replaces the months that it brings."""
    by_provider: defaultdict[str, list[BillFile]] = defaultdict(list)
    for file in files:
        by_provider[file.provider].append(file)
    for provider, bills in by_provider.items():
        receipt = receive_files(
            actor,
            NewDelivery(
                source_name=SOURCE_OF_PROVIDER[provider],
                files=[IncomingFile(name=bill.name, chunks=[bill.content]) for bill in bills],
                periods=[f"{bill.billing_month:%Y-%m}" for bill in bills],
                bill_format="focus",
                confirm_shrink=True,
            ),
        )
        finish_job(receipt.job_id, actor.organisation_id)


def state_invoices(actor: Actor, ledger: ChargeLedger) -> None:
    """The invented invoices of the months that are over, rounded to the cent as invoices are."""
    sources = {one.name: one.pk for one in billing_sources(actor.organisation_id)}
    stated = {
        (one.source_id, one.month_on): one.expected
        for one in reconciliations(actor.organisation_id)
    }
    for (provider, month), billed in ledger.billed_by_month().items():
        source_id, amount = sources[SOURCE_OF_PROVIDER[provider]], billed.quantize(CENT)
        is_over = month < story.AS_OF.date().replace(day=1)
        if not is_over or stated.get((source_id, month)) == amount:
            continue
        wish = TotalWish(
            source_id=source_id,
            month_on=month,
            amount=amount,
            currency="USD",
            tolerance=CENT,
            note="synthetic",
        )
        state_total(actor, wish)


def deliver_progress(actor: Actor, runs: Sequence[RunOfStory]) -> None:
    """Each run's days as they became known, each at its end; a run that has reported stays."""
    project = project_for(actor, story.PROJECT_SLUG)
    for run in runs:
        record = run_by_slug(project.pk, run.slug)
        if record is None:
            raise LookupError(f"The demo's configuration lacks the run {run.slug}")
        if tokens_by(record.run_id, story.AS_OF) is not None:
            continue
        with transaction.atomic():
            for known_at, (points, events) in by_day(run).items():
                record_progress(
                    actor, record, points=points, events=events, source=SOURCE, now=known_at
                )
            sum_stale_days(record.run_id)


def deliver_power(actor: Actor, files: Sequence[PowerFile], *, now: datetime) -> None:
    """All months of power as one delivery, as `manage.py import_power` takes them.

    Raises:
        PowerDeliveryError: readings were set aside.
    """
    with tempfile.TemporaryDirectory(prefix=SCRATCH_PREFIX) as folder:
        paths = _written(files, Path(folder))
        report = import_power(actor, site_name=story.SITE_SLUG, paths=paths, now=now)
    if report.rejected:
        raise PowerDeliveryError(f"{report.rejected} readings set aside: {dict(report.reasons)}")


@contextmanager
def delivering_power(organisation_slug: str, files: Sequence[PowerFile]) -> Iterator[None]:
    """The same by a process of its own, while the caller does something else; waits at the end.

    Raises:
        PowerDeliveryError: the other process failed, or set readings aside.
    """
    with tempfile.TemporaryDirectory(prefix=SCRATCH_PREFIX) as folder:
        paths = _written(files, Path(folder))
        command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "import_power", "--json"]
        command += [
            "--organisation",
            organisation_slug,
            "--site",
            story.SITE_SLUG,
            *map(str, paths),
        ]
        with subprocess.Popen(command, stdout=PIPE, stderr=PIPE, text=True) as process:
            try:
                yield
                said, complained = process.communicate()
            finally:
                if process.poll() is None:
                    process.terminate()
        if process.returncode:
            raise PowerDeliveryError(complained.strip() or f"exit status {process.returncode}")
        report = json.loads(said)
        if report["rejected"]:
            raise PowerDeliveryError(
                f"{report['rejected']} readings set aside: {report['reasons']}"
            )


def _written(files: Sequence[PowerFile], folder: Path) -> list[Path]:
    """The files on disk."""
    paths = [folder / file.name for file in files]
    for path, file in zip(paths, files, strict=True):
        path.write_bytes(file.content)
    return paths
