"""Hands the demo's generated files in at the doors of bills and power, and waits for their jobs."""

import tempfile
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from billing.services import IncomingFile, NewDelivery, receive_files
from carbon.records import PowerReport
from carbon.services import import_power
from costwatch.demo import skus, story
from costwatch.demo.focus import BillFile
from costwatch.demo.inline_jobs import finish_job
from costwatch.demo.power import PowerFile
from projects.records import Actor

SOURCE_OF_PROVIDER = {skus.AWS: story.AWS_SOURCE, skus.GCP: story.GCP_SOURCE}


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


def deliver_power(actor: Actor, files: Sequence[PowerFile], *, now: datetime) -> PowerReport:
    """All months of power as one delivery, as `manage.py import_power` takes them."""
    with tempfile.TemporaryDirectory(prefix="costwatch-demo-") as folder:
        paths = [Path(folder) / file.name for file in files]
        for path, file in zip(paths, files, strict=True):
            path.write_bytes(file.content)
        return import_power(actor, site_name=story.SITE_SLUG, paths=paths, now=now)
