"""Months are versions with a pointer: replaced whole, added to, never shrunk unasked."""

from datetime import date
from decimal import Decimal
from threading import Thread

import pytest
from django.core.exceptions import ValidationError
from django.db import connection
from django.utils import timezone

from audit.models import AuditEntry
from billing.checks import verify
from billing.models import BillingPeriod, ChargeSlice, DailyCost, Delivery, PeriodVersion
from billing.selectors import cost_by_day, costs_grouped, published_versions
from billing.services import (
    IncomingFile,
    NewDelivery,
    confirm_delivery,
    decline_delivery,
    receive_files,
    stage_delivery,
    sweep_lake,
)
from jobs.records import JobContext
from jobs.services import run_job
from lake import store
from tests.billing.builders import (
    by,
    charge,
    focus_csv,
    hand_in,
    imported,
    in_month,
    operator,
    organisation,
    roll_up,
    total,
)

pytestmark = pytest.mark.django_db(transaction=True)


def months() -> dict[str, int]:
    """Published rows by billing month."""
    return {
        str(version.period): version.rows
        for version in published_versions(organisation().pk).select_related("period")
    }


def many(month: str, count: int, **columns: str) -> list[dict[str, str]]:
    return [in_month(month, **columns) for _ in range(count)]


def test_a_restated_month_replaces_the_old_one_whole():
    imported(focus_csv(many("2026-05", 3, BilledCost="1")))

    imported(focus_csv(many("2026-05", 4, BilledCost="2")))

    assert total() == Decimal(8)
    assert PeriodVersion.objects.count() == 2
    assert PeriodVersion.objects.filter(superseded_at=None).count() == 1
    assert verify(organisation().pk) == []


def test_a_few_rows_of_the_next_month_add_to_it_instead_of_wiping_it():
    imported(focus_csv(many("2026-06", 5, BilledCost="1")))

    imported(focus_csv([*many("2026-05", 60, BilledCost="1"), in_month("2026-06", BilledCost="7")]))

    assert months() == {"2026-05": 60, "2026-06": 6}
    assert total() == Decimal(72)
    assert verify(organisation().pk) == []


def test_a_restated_delivery_brings_its_spill_over_once():
    imported(focus_csv(many("2026-06", 5, BilledCost="1")))
    spill = in_month("2026-06", BilledCost="7")
    imported(focus_csv([*many("2026-05", 60), spill]))

    imported(focus_csv([*many("2026-05", 61), spill]))

    assert months() == {"2026-05": 61, "2026-06": 6}
    assert verify(organisation().pk) == []


def test_a_whole_delivery_of_a_month_replaces_the_spill_over_there():
    imported(focus_csv([*many("2026-05", 60), in_month("2026-06", BilledCost="7")]))

    imported(focus_csv(many("2026-06", 3, BilledCost="1")))

    assert months() == {"2026-05": 60, "2026-06": 3}


def test_spill_over_that_a_whole_month_replaced_does_not_come_back():
    spill = in_month("2026-06", BilledCost="7")
    imported(focus_csv([*many("2026-05", 60), spill]))
    imported(focus_csv([*many("2026-06", 3), spill]))

    again = imported(focus_csv([*many("2026-05", 61), spill]))
    third = imported(focus_csv([*many("2026-05", 62), spill]))

    assert months() == {"2026-05": 62, "2026-06": 4}
    assert again.report["left_out"] == third.report["left_out"] == ["2026-06"]
    assert verify(organisation().pk) == []


def test_an_older_delivery_that_is_late_leaves_its_spill_over_out():
    spill = in_month("2026-06", BilledCost="7")
    content = focus_csv([*many("2026-05", 61), spill])
    older = NewDelivery(source_name="aws", files=[IncomingFile(name="a.csv", chunks=[content])])
    late = receive_files(operator(), older)
    imported(focus_csv([*many("2026-05", 62), spill]))

    run_job(late.job_id)

    assert months() == {"2026-05": 62, "2026-06": 1}
    assert Delivery.objects.get(pk=late.delivery_id).state == Delivery.State.PUBLISHED


def test_a_whole_month_that_would_drop_spill_over_asks_first():
    imported(focus_csv(many("2026-06", 5)))
    imported(focus_csv([*many("2026-05", 60), in_month("2026-06", BilledCost="7")]))

    delivery = imported(focus_csv(many("2026-06", 5, BilledCost="3")))

    assert delivery.report["shrinking"] == [
        {
            "period": "2026-06",
            "rows_before": 6,
            "rows": 5,
            "totals": [{"currency": "USD", "billed_before": "12.5", "billed": "15"}],
        }
    ]
    assert months() == {"2026-05": 60, "2026-06": 6}


def test_two_imports_of_a_month_at_once_leave_one_of_them_whole():
    bills = [focus_csv(many("2026-05", 40, BilledCost=cost)) for cost in ("1", "2", "3", "5")]
    receipts = [
        receive_files(
            operator(),
            NewDelivery(source_name="aws", files=[IncomingFile(name="a.csv", chunks=[content])]),
        )
        for content in bills
    ]

    def work(job_id):
        try:
            run_job(job_id)
        finally:
            connection.close()

    threads = [Thread(target=work, args=[one.job_id]) for one in reversed(receipts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {one.state for one in Delivery.objects.all()} == {Delivery.State.PUBLISHED}
    assert total() == Decimal(200), "the one that arrived last"
    assert PeriodVersion.objects.filter(superseded_at=None).count() == 1
    assert verify(organisation().pk) == []


def test_spill_over_into_a_month_that_holds_rows_is_pointed_out():
    imported(focus_csv(many("2026-06", 5)))

    delivery = imported(focus_csv([*many("2026-05", 60), in_month("2026-06")]))

    assert delivery.report["added_to"] == [{"period": "2026-06", "rows": 1, "rows_there": 5}]


def test_declared_months_are_replaced_and_others_added_to():
    imported(focus_csv(many("2026-06", 5)))

    imported(focus_csv([*many("2026-05", 2), *many("2026-06", 2)]), periods=["2026-05"])

    assert months() == {"2026-05": 2, "2026-06": 7}


def test_several_files_of_one_delivery_are_one_month():
    delivery = imported(
        ("a.csv", focus_csv(many("2026-05", 3))), ("b.csv", focus_csv(many("2026-05", 2, Tags="")))
    )

    assert delivery.rows == 5
    assert months() == {"2026-05": 5}


def test_a_delivery_that_would_shrink_a_month_asks_first():
    imported(focus_csv(many("2026-05", 3, BilledCost="1")))
    before = roll_up()

    delivery = imported(focus_csv(many("2026-05", 2, BilledCost="1")))

    assert delivery.state == Delivery.State.NEEDS_CONFIRMATION
    assert delivery.report["shrinking"] == [
        {
            "period": "2026-05",
            "rows_before": 3,
            "rows": 2,
            "totals": [{"currency": "USD", "billed_before": "3", "billed": "2"}],
        }
    ]
    assert roll_up() == before
    assert PeriodVersion.objects.count() == 1


def test_a_confirmed_delivery_shrinks_the_month():
    imported(focus_csv(many("2026-05", 3, BilledCost="1")))
    delivery = imported(focus_csv(many("2026-05", 2, BilledCost="1")))

    run_job(confirm_delivery(operator(), delivery.pk).job_id)

    assert total() == Decimal(2)
    assert verify(organisation().pk) == []
    with pytest.raises(ValidationError):
        confirm_delivery(operator(), delivery.pk)


def test_the_same_bytes_with_the_confirmation_are_published():
    imported(focus_csv(many("2026-05", 3)))
    content = focus_csv(many("2026-05", 2))
    imported(content)

    imported(content, confirm_shrink=True)

    assert months() == {"2026-05": 2}


def test_a_declined_delivery_changes_nothing_and_leaves_nothing():
    imported(focus_csv(many("2026-05", 3)))
    delivery = imported(focus_csv(many("2026-05", 2)))

    decline_delivery(operator(), delivery.pk)

    assert months() == {"2026-05": 3}
    assert sweep_lake(grace_s=0) == {"scratch": 0, "slices": 1, "blobs": 0, "samples": 0}
    assert verify(organisation().pk) == []


def test_what_was_known_earlier_can_still_be_told():
    imported(focus_csv(many("2026-05", 3, EffectiveCost="1")))
    instant = timezone.now()
    imported(focus_csv(many("2026-05", 3, EffectiveCost="5")))
    day = {
        "start_on": date(2026, 5, 1),
        "end_on": date(2026, 6, 1),
    }

    then = cost_by_day(organisation().pk, None, basis="effective", as_of=instant, **day)
    now = cost_by_day(organisation().pk, None, basis="effective", **day)

    assert [row.cost for row in then] == [Decimal(3)]
    assert [row.cost for row in now] == [Decimal(15)]


def test_running_the_job_again_changes_nothing():
    receipt = hand_in(focus_csv(many("2026-05", 3)))
    before = (roll_up(), PeriodVersion.objects.count(), AuditEntry.objects.count())
    context = JobContext(
        job_id=receipt.job_id,
        organisation_id=organisation().pk,
        payload={"delivery_id": str(receipt.delivery_id)},
    )

    stage_delivery(context)

    assert (roll_up(), PeriodVersion.objects.count(), AuditEntry.objects.count()) == before


def test_an_older_delivery_that_is_late_does_not_replace_a_newer_one():
    older = NewDelivery(
        source_name="aws",
        files=[IncomingFile(name="a.csv", chunks=[focus_csv(many("2026-05", 3, BilledCost="1"))])],
    )
    late = receive_files(operator(), older)
    imported(focus_csv(many("2026-05", 3, BilledCost="2")))

    run_job(late.job_id)

    assert Delivery.objects.get(pk=late.delivery_id).report["left_out"] == ["2026-05"]
    assert total() == Decimal(6)
    assert verify(organisation().pk) == []


def test_sources_do_not_replace_each_others_months():
    imported(focus_csv([charge(BilledCost="1")]), source="aws")
    imported(focus_csv([charge(BilledCost="1", ProviderName="Google Cloud")]), source="gcp")

    assert by("provider_name") == {"AWS": Decimal(1), "Google Cloud": Decimal(1)}


def test_a_sweep_spares_what_is_in_use():
    imported(focus_csv(many("2026-05", 3)))
    before = roll_up()

    assert sweep_lake(grace_s=0) == {"scratch": 0, "slices": 0, "blobs": 0, "samples": 0}

    assert roll_up() == before
    assert verify(organisation().pk) == []


def test_every_change_is_in_the_trail():
    imported(focus_csv(many("2026-05", 3)))

    actions = list(AuditEntry.objects.order_by("position").values_list("action", flat=True))

    assert actions[-3:] == ["source.create", "delivery.receive", "delivery.publish"]


def test_verify_finds_a_changed_roll_up():
    imported(focus_csv(many("2026-05", 3, BilledCost="1")))
    DailyCost.objects.update(billed_cost=Decimal("3.000000000000000001"))

    codes = {finding.code for finding in verify(organisation().pk)}

    assert codes == {"daily_cost_engine", "daily_cost_python"}


def test_verify_finds_a_lost_file():
    imported(focus_csv(many("2026-05", 3)))
    store.remove(ChargeSlice.objects.get().path)

    assert [finding.code for finding in verify(organisation().pk)] == ["charges_file_missing"]


def test_verify_finds_a_wrong_total():
    imported(focus_csv(many("2026-05", 3)))
    PeriodVersion.objects.update(rows=4)

    assert [finding.code for finding in verify(organisation().pk)] == ["version_rows"]


def test_months_keep_their_rows_under_many_groupings():
    imported(focus_csv([*many("2026-05", 2), *many("2026-06", 2)]))

    for group_by in (["month"], ["day", "x_cost_class"], ["tag:team"], ["project", "month"]):
        table = costs_grouped(
            organisation().pk, group_by=group_by, basis="billed", include_unallocated=True
        )
        assert [entry.cost for entry in table.total] == [Decimal("4.40")]
    assert BillingPeriod.objects.count() == 2


def test_totals_are_unknown_for_a_cost_that_a_row_lacks_and_stay_so_when_parts_are_added():
    lacking = in_month("2026-06", BilledCost="7", EffectiveCost="", ListCost="")
    delivery = imported(focus_csv([*many("2026-05", 60), in_month("2026-06"), lacking]))
    (total,) = delivery.totals
    assert (total["effective_cost"], total["list_cost"]) == (None, None)
    assert total["billed_cost"] is not None
    assert total["contracted_cost"] is not None

    added = imported(focus_csv([*many("2026-05", 60, BilledCost="2"), in_month("2026-06")]))

    assert added.totals[0]["effective_cost"] is not None
    for version in PeriodVersion.objects.all():
        lacks = version.slices.filter(delivery=delivery, period__start="2026-06-01").exists()
        assert (version.totals[0]["effective_cost"] is None) is lacks
    assert verify(organisation().pk) == []


def test_totals_of_before_that_were_partial_are_told_apart_from_wrong_ones():
    rows = [
        in_month("2026-05", EffectiveCost="2"),
        in_month("2026-05", EffectiveCost="1"),
        in_month("2026-05", EffectiveCost=""),
    ]
    imported(focus_csv(rows))
    version = PeriodVersion.objects.get()
    assert verify(organisation().pk) == []
    (total,) = version.totals

    PeriodVersion.objects.update(totals=[{**total, "effective_cost": "3"}])
    assert [one.code for one in verify(organisation().pk)] == ["version_totals_partial"]

    PeriodVersion.objects.update(totals=[{**total, "effective_cost": "999"}])
    assert [one.code for one in verify(organisation().pk)] == ["version_totals"]
