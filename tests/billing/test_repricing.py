"""New prices stage estimated bills again: a new version of their months, once, and of no others."""

import pytest

from billing.models import Delivery, PeriodVersion
from billing.services import add_price
from jobs.models import Job
from jobs.services import run_job
from tests.billing.builders import costing, focus_csv, imported, in_month, operator, total
from tests.billing.price_builders import price_wish

pytestmark = pytest.mark.django_db


def estimated(*rows: dict[str, str], **options) -> Delivery:
    """A published delivery whose report says that costs of it are our estimates."""
    delivery = imported(focus_csv(rows), **options)
    delivery.report["has_estimated"] = True
    delivery.save(update_fields=["report"])
    return delivery


def waiting() -> list[Job]:
    return list(Job.objects.filter(state="queued").order_by("created_at"))


def run_all() -> None:
    while jobs := waiting():
        for job in jobs:
            run_job(job.pk)


def test_a_new_price_asks_for_one_repricing_where_bills_are_estimated():
    imported(focus_csv([costing("1.10")]))
    add_price(operator(), price_wish("2.50"))
    assert waiting() == []

    estimated(costing("2.20"), source="gpu")
    add_price(operator(), price_wish("2.40", valid_from="2026-02-01"))
    add_price(operator(), price_wish("2.30", valid_from="2026-03-01"))
    assert [job.kind for job in waiting()] == ["billing.reprice"]


def test_repricing_publishes_a_new_version_and_keeps_the_old_one():
    first = estimated(costing("2.20"), source="gpu")
    before = total()
    add_price(operator(), price_wish("2.50"))

    run_all()

    again = Delivery.objects.exclude(pk=first.pk).get()
    assert (again.state, again.origin["repriced"]) == ("published", True)
    assert again.origin["repriced_from"] == str(first.pk)
    assert [version.number for version in PeriodVersion.objects.order_by("number")] == [1, 2]
    assert PeriodVersion.objects.get(superseded_at=None).delivery_id == again.pk
    assert total() == before


def test_a_bill_that_a_newer_one_has_replaced_is_left_as_it_is():
    estimated(costing("2.20"), source="gpu")
    newer = imported(focus_csv([costing("3.30")]), source="gpu")
    add_price(operator(), price_wish("2.50"))

    run_all()

    assert PeriodVersion.objects.get(superseded_at=None).delivery_id == newer.pk
    assert Delivery.objects.count() == 2


def test_repricing_twice_changes_no_total_and_no_neighbouring_month():
    rows = [*(in_month("2026-05") for _ in range(30)), in_month("2026-06", BilledCost="7.00")]
    estimated(*rows, source="gpu")
    before = total()
    add_price(operator(), price_wish("2.50"))
    run_all()
    for delivery in Delivery.objects.all():
        delivery.report["has_estimated"] = True
        delivery.save(update_fields=["report"])
    add_price(operator(), price_wish("2.40", valid_from="2026-02-01"))
    run_all()

    assert total() == before
    assert Delivery.objects.count() == 3


def test_the_same_file_handed_in_again_is_still_known():
    content = focus_csv([costing("2.20")])
    first = imported(content, source="gpu")
    first.report["has_estimated"] = True
    first.save(update_fields=["report"])
    add_price(operator(), price_wish("2.50"))
    run_all()

    assert imported(content, source="gpu").pk == first.pk
    assert Delivery.objects.count() == 2
