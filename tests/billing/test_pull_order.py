"""The highest version wins, in whatever order the states of a month arrive (I6)."""

from datetime import UTC, datetime
from decimal import Decimal
from itertools import permutations
from uuid import uuid4

import pytest

from billing.checks import verify
from billing.models import BillingPeriod, Delivery
from billing.records import Dataset
from billing.services import IncomingFile, NewDelivery, publishing, receive_files
from billing.services.publishing import Staged, StagedSlice, settle
from jobs.records import JobContext
from jobs.services import run_job
from tests.billing.builders import operator, organisation
from tests.billing.pull_builders import bill, make_source

pytestmark = pytest.mark.django_db(transaction=True)
BILLS = [bill("2026-05", str(number), str(number)) for number in (1, 2, 3, 4)]


def bring(source, number, *, version_at):
    receipt = receive_files(
        operator(),
        NewDelivery(
            source_name=source.name,
            source=source,
            files=[IncomingFile(name="bill.csv", chunks=[BILLS[number]])],
            periods=["2026-05"],
            version_at=version_at,
        ),
    )
    run_job(receipt.job_id)
    return Delivery.objects.get(pk=receipt.delivery_id)


def published_cost(source):
    period = BillingPeriod.objects.get(source=source)
    return Decimal(period.published_version.totals[0]["billed_cost"])


def test_i06_a_late_older_state_does_not_replace_the_newest():
    for order in ((3, 0, 1), (0, 3, 2)):
        source = make_source("s3", {}, name=str(uuid4()))

        for number in order:
            bring(source, number, version_at=datetime(2026, 6, 1 + number, tzinfo=UTC))

        assert published_cost(source) == Decimal(8), order
    assert verify(organisation().pk) == []


def test_i06_every_order_of_four_states_ends_with_the_newest(monkeypatch):
    # the roll-up is another test's: without it all orders are tried in a moment
    monkeypatch.setattr(publishing, "write_daily_costs", lambda _version, _rules: None)
    for order in permutations(range(4)):
        source = make_source("s3", {}, name=str(uuid4()))

        for number in order:
            publish(source, number)

        version = BillingPeriod.objects.get(source=source).published_version
        assert version.rows == 40, order
        assert version.delivery.content_sha256 == "3", order


def publish(source, number):
    """Settle a delivery of ten rows more than the state before it."""
    delivery = Delivery.objects.create(
        organisation=source.organisation,
        source=source,
        content_sha256=str(number),
        confirm_shrink=True,
        received_by="tests",
        version_at=datetime(2026, 6, 1 + number, tzinfo=UTC),
    )
    staged = StagedSlice(
        slice_id=uuid4(),
        dataset=Dataset.BILLED,
        period="2026-05",
        is_main=True,
        path=str(uuid4()),
        size_bytes=1,
        rows=10 * (number + 1),
        totals=[],
    )
    settle(
        JobContext(job_id=uuid4(), organisation_id=source.organisation_id, payload={}),
        delivery.pk,
        staged=Staged(
            bill_format="focus", slices=[staged], rows=10, totals=[], report={}, rows_by_file={}
        ),
    )


def test_without_a_time_of_the_provider_the_last_to_arrive_wins():
    source = make_source("s3", {})
    for number in (3, 0, 2, 1):
        bring(source, number, version_at=None)

    assert published_cost(source) == Decimal(4)


def test_a_bill_handed_in_after_a_pulled_one_replaces_it():
    source = make_source("s3", {})
    bring(source, 3, version_at=datetime(2026, 6, 9, tzinfo=UTC))
    bring(source, 0, version_at=None)

    assert published_cost(source) == Decimal(2)
