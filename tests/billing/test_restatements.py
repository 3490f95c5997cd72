"""Two hundred restatements while people read: every total seen is a state, never a mix of two."""

from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from billing.checks import verify
from billing.models import ChargeSlice, PeriodVersion
from billing.records import DATASET, Dataset
from billing.services import IncomingFile, NewDelivery, receive_files
from billing.services.publishing import Staged, StagedSlice, settle
from jobs.records import JobContext
from lake import store
from tests.billing.builders import focus_csv, imported, in_month, operator, organisation, total
from tests.billing.test_killed import reader

pytestmark = pytest.mark.django_db(transaction=True)
RESTATEMENTS = 200
EVERY_JUNE = 10  # each tenth restates two months at once
SERVICES = ("AmazonEC2", "AmazonS3", "AmazonVPC")


def state(number: int) -> Decimal:
    """The total of the number-th state: which May and which June it is made of can be told."""
    return len(SERVICES) * (Decimal(1000 * number) + number // EVERY_JUNE)


class Restater:
    """Publishes the number-th state by the doors of staging; only its reading of files is left out.

    The slices are those of a real import with other costs.
    """

    def __init__(self) -> None:
        rows = [
            in_month(month, BilledCost="0", ServiceName=service)
            for month in ("2026-05", "2026-06")
            for service in SERVICES
        ]
        delivery = imported(focus_csv(rows))
        self.slices = {str(one.period): one for one in delivery.slices.select_related("period")}
        self.tables = {
            month: pq.read_table(store.resolve(one.path), partitioning=None)
            for month, one in self.slices.items()
        }

    def restate(self, number: int) -> None:
        content = focus_csv([in_month("2026-05", BilledCost=str(number))])
        file = IncomingFile(name="bill.csv", chunks=[content])
        receipt = receive_files(operator(), NewDelivery(source_name="aws", files=[file]))
        costs = {"2026-05": Decimal(1000 * number)}
        if number % EVERY_JUNE == 0:
            costs["2026-06"] = Decimal(number // EVERY_JUNE)
        staged = [self._slice(month, cost) for month, cost in costs.items()]
        context = JobContext(job_id=receipt.job_id, organisation_id=organisation().pk, payload={})
        rows = sum(one.rows for one in staged)
        settle(
            context,
            receipt.delivery_id,
            staged=Staged(
                bill_format="focus",
                slices=staged,
                rows=rows,
                totals=[],
                report={},
                rows_by_file={0: rows},
            ),
        )

    def _slice(self, month: str, cost: Decimal) -> StagedSlice:
        was, table = self.slices[month], self.tables[month]
        place = table.schema.get_field_index("billed_cost")
        kind = table.schema.field(place).type
        changed = table.set_column(
            place, table.schema.field(place), pa.array([cost] * table.num_rows, type=kind)
        )

        def write(target: Path) -> None:
            pq.write_table(changed, target)

        slice_id: UUID = uuid4()
        partition = {"source": str(was.period.source_id), "book": "billed", "billing_period": month}
        stored = store.store(dataset=DATASET, partition=partition, version=slice_id, write=write)
        totals: list[dict[str, Any]] = [
            {**entry, "billed_cost": str(cost * was.rows)} for entry in was.totals
        ]
        return StagedSlice(
            slice_id=slice_id,
            dataset=Dataset.BILLED,
            period=month,
            is_main=True,
            path=stored.path,
            size_bytes=stored.size_bytes,
            rows=was.rows,
            totals=totals,
        )


def test_two_hundred_restatements_are_seen_whole_or_not_at_all():
    restater = Restater()

    with reader() as one_reader, reader() as another:
        for number in range(1, RESTATEMENTS + 1):
            restater.restate(number)

    seen = one_reader | another
    assert seen <= {state(number) for number in range(RESTATEMENTS + 1)}
    assert len(seen) > RESTATEMENTS / 4
    assert total() == state(RESTATEMENTS)
    assert PeriodVersion.objects.filter(superseded_at=None).count() == 2
    assert ChargeSlice.objects.count() == 2 + RESTATEMENTS + RESTATEMENTS // EVERY_JUNE
    assert verify(organisation().pk) == []
