"""The job that turns a delivery's bytes into slices of the lake and has them published."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final
from uuid import UUID, uuid4

import ibis
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from billing.adapters import AUTO
from billing.amounts import summed, totals_document
from billing.expressions import totals_by_currency
from billing.models import Delivery, DeliveryFile
from billing.reading import read_charges
from billing.recognition import dataset_of, recognised, settled
from billing.records import DATASET, ChargesRefusedError, Dataset
from billing.services.parsing import parse_files
from billing.services.publishing import Staged, StagedSlice, settle
from billing.services.pull_requests import note_refused_pull
from billing.services.receiving import give_up_blobs
from billing.services.staged_charges import report_of, written_charges
from jobs.records import JobContext, PermanentJobError
from lake import store
from lake.engine import Engine, TooLargeError, open_engine
from lake.places import scratch
from projects.access import system_actor
from projects.trail import note

MAIN_SHARE: Final = Decimal("0.05")  # of the largest month: from there on a month is meant whole
MEBIBYTE: Final = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """What staging needs at hand."""

    context: JobContext
    delivery: Delivery
    folder: Path


def stage_delivery(context: JobContext) -> dict[str, Any]:
    """Stage a received delivery and publish it. Running it again changes nothing.

    Raises:
        PermanentJobError: the delivery is refused; nothing of it is stored.
    """
    delivery = Delivery.objects.select_related("source").get(
        pk=UUID(context.payload["delivery_id"]), organisation_id=context.organisation_id
    )
    if delivery.state in (Delivery.State.PUBLISHED, Delivery.State.REFUSED):
        return {"delivery_id": str(delivery.pk), "state": delivery.state}
    if delivery.slices.exists():  # staged before, and waiting for somebody's word
        state = settle(context, delivery.pk, staged=None)
        return {"delivery_id": str(delivery.pk), "state": state}
    try:
        with scratch() as folder:
            staged = _stage(_Work(context=context, delivery=delivery, folder=folder))
        state = _settle(context, delivery, staged)
    except ChargesRefusedError as refusal:
        _refuse(context, delivery, refusal)
        raise PermanentJobError(refusal.sentence) from refusal
    return {"delivery_id": str(delivery.pk), "state": state}


def _settle(context: JobContext, delivery: Delivery, staged: Staged) -> str:
    """Publish, or take the stored slices back where the month's sums are too large for money."""
    try:
        return settle(context, delivery.pk, staged=staged)
    except TooLargeError as error:
        for item in staged.slices:
            store.remove(item.path)
        raise ChargesRefusedError("too_large", str(error)) from error


def _refuse(context: JobContext, delivery: Delivery, refusal: ChargesRefusedError) -> None:
    """Note why, and forget the bytes."""
    document = {
        "code": refusal.code,
        "reason": refusal.reason,
        "file": refusal.file,
        "row": refusal.row,
        "column": refusal.column,
    }
    with transaction.atomic():
        context.assert_still_mine()
        Delivery.objects.filter(pk=delivery.pk).update(
            state=Delivery.State.REFUSED, refusal=document, settled_at=timezone.now()
        )
        actor = system_actor(delivery.organisation_id, delivery.received_by)
        note_refused_pull(delivery, document)
        note(actor, "delivery.refuse", subject=("delivery", delivery.pk), after=document)
    give_up_blobs(delivery.files.values_list("sha256", flat=True))


def _stage(work: _Work) -> Staged:
    """Parse, read, classify and store every period's rows."""
    parsed = parse_files(work.context, work.delivery, work.folder)
    files = recognised(
        parsed.tables,
        wanted=work.delivery.bill_format or AUTO,
        mapping=work.delivery.source.mapping,
    )
    rows = sum(file.table.rows for file in files)
    work.context.report(0, rows, _("Reading amounts and dates"))
    with open_engine() as engine:
        try:
            files = settled(engine, files)
            work.delivery.bill_format = files[0].adapter.name
            reading = read_charges(engine, files)
            work.context.report(rows // 4, rows, _("Writing charges"))
            typed, charges = written_charges(
                engine, reading, work.folder, work.delivery.organisation_id
            )
            report = report_of(engine, reading, charges)
            slices = _store_slices(work, engine, charges, typed=typed, dataset=dataset_of(files))
        except TooLargeError as error:
            raise ChargesRefusedError("too_large", str(error)) from error
    report["same_content"] = parsed.same_content
    report["also_from"] = _other_sources(work.delivery)
    report["periods"] = [
        {"period": item.period, "rows": item.rows, "is_main": item.is_main} for item in slices
    ]
    totals = summed(item.totals for item in slices)
    work.context.report(rows, rows, _("Publishing"))
    return Staged(
        bill_format=work.delivery.bill_format,
        slices=slices,
        rows=sum(entry["rows"] for entry in totals),
        totals=totals,
        report=report,
        rows_by_file=parsed.rows_by_file,
    )


def _other_sources(delivery: Delivery) -> list[str]:
    """The sources from which a file of these bytes is published too: then it counts twice."""
    hashes = delivery.files.values_list("sha256", flat=True)
    twins = DeliveryFile.objects.filter(
        organisation_id=delivery.organisation_id,
        sha256__in=list(hashes),
        delivery__state=Delivery.State.PUBLISHED,
    ).exclude(delivery__source_id=delivery.source_id)
    names = twins.values_list("delivery__source__name", flat=True)
    return sorted(names.distinct())


def _store_slices(
    work: _Work, engine: Engine, charges: ibis.Table, *, typed: Path, dataset: Dataset
) -> list[StagedSlice]:
    """One immutable file for each billing month among the rows."""
    written = engine.text_table(typed).drop("file_row_number")
    months: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in engine.rows(totals_by_currency(charges, "x_billing_period")):
        months[row["x_billing_period"]].append(row)
    periods = {month: sum(row["rows"] for row in found) for month, found in months.items()}
    mains = _mains(work.delivery, periods)
    staged: list[StagedSlice] = []
    for period in sorted(periods):

        def write(target: Path, period: str = period) -> None:
            if len(periods) == 1:
                target.hardlink_to(typed)
            else:
                engine.write(written.filter(written.x_billing_period == period), target)

        slice_id = uuid4()
        partition = {
            "source": str(work.delivery.source_id),
            "book": dataset.value,
            "billing_period": period,
        }
        stored = store.store(dataset=DATASET, partition=partition, version=slice_id, write=write)
        staged.append(
            StagedSlice(
                slice_id=slice_id,
                dataset=dataset,
                period=period,
                is_main=period in mains,
                path=stored.path,
                size_bytes=stored.size_bytes,
                rows=periods[period],
                totals=totals_document(months[period]),
            )
        )
    return staged


def _mains(delivery: Delivery, periods: Mapping[str, int]) -> set[str]:
    """The months meant whole: those declared, else those with a fair share of the rows.

    Raises:
        ChargesRefusedError: a declared month has no row.
    """
    if delivery.origin.get("adds"):  # a further part of an export: it replaces nothing
        return set()
    declared = set(delivery.declared_periods)
    if absent := sorted(declared - set(periods)):
        raise ChargesRefusedError(
            "period",
            _("the delivery was declared to hold {absent}, but holds only {found}").format(
                absent=", ".join(absent), found=", ".join(sorted(periods))
            ),
        )
    largest = max(periods.values())
    return declared or {month for month, rows in periods.items() if rows >= MAIN_SHARE * largest}
