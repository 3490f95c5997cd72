"""Invoices tie to charges, versions of a month can be compared, findings have a price."""

from datetime import date
from decimal import Decimal

import pytest
from django.core.exceptions import ValidationError
from django.urls import reverse

from billing.finding_selectors import spend_findings
from billing.invoice_records import Tie
from billing.invoice_selectors import reconciliations, view_totals
from billing.models import BillingPeriod, InvoiceTotal, Source
from billing.records import Basis
from billing.services.invoices import TotalWish, state_total, withdraw_total
from billing.version_selectors import version_difference
from projects.records import OrganisationRole
from tests.billing.builders import charge, costing, focus_csv, imported, operator
from tests.builders import organisation, person, signed_in

pytestmark = pytest.mark.django_db
MAY = date(2026, 5, 1)


def states(amount: str, **changes) -> InvoiceTotal:
    usual = {
        "source_id": Source.objects.get().pk,
        "month_on": MAY,
        "amount": Decimal(amount),
        "currency": "USD",
    }
    return state_total(operator(), TotalWish(**{**usual, **changes}))


def ties() -> dict[str, tuple]:
    return {
        one.invoice_id: (one.tie, one.found, one.difference)
        for one in reconciliations(organisation().pk)
    }


def test_a_month_ties_differs_within_tolerance_or_is_not_stated():
    imported(focus_csv([costing("1.10"), costing("2.2049")]))
    assert ties() == {"": (Tie.NOT_STATED, Decimal("3.3049"), None)}

    states("3.30")
    assert ties()[""] == (Tie.DIFFERS, Decimal("3.3049"), Decimal("0.0049"))

    states("3.30", tolerance=Decimal("0.01"))
    assert ties()[""][0] is Tie.TIES


def test_an_invoice_is_compared_with_its_own_charges():
    rows = [
        costing("1.10", InvoiceId="A"),
        costing("2", InvoiceId="B"),
        costing("-0.5", InvoiceId="A"),
    ]
    imported(focus_csv(rows))

    states("0.60", invoice_id="A")
    states("2", invoice_id="C")

    assert ties()["A"] == (Tie.TIES, Decimal("0.60"), Decimal(0))
    assert ties()["C"] == (Tie.NO_CHARGES, None, None)


def test_a_month_in_which_a_charge_lacks_its_cost_cannot_be_compared():
    imported(focus_csv([costing("1.10"), charge(BilledCost="")]))

    states("1.10")

    assert ties()[""] == (Tie.UNKNOWN, None, None)


def test_a_withdrawn_total_is_kept_but_counts_no_more():
    imported(focus_csv([costing("1.10")]))
    total = states("9")

    withdraw_total(operator(), total.pk)

    assert ties()[""][0] is Tie.NOT_STATED
    assert InvoiceTotal.objects.get().amount == 9
    with pytest.raises(ValidationError):
        withdraw_total(operator(), total.pk)


def test_every_view_of_a_month_comes_to_one_total():
    imported(focus_csv([costing("1.10"), costing("-0.3", RegionId=""), costing("7.123456789")]))

    found = view_totals(organisation().pk, BillingPeriod.objects.get())

    assert len(found) == 8
    assert all(one.agrees for one in found)
    assert {one.cost for one in found} == {Decimal("7.923456789")}


def test_every_view_of_a_month_is_unknown_where_a_row_lacks_the_cost():
    imported(focus_csv([costing("1.10"), charge(BilledCost="", RegionId="")]))

    found = view_totals(organisation().pk, BillingPeriod.objects.get())

    assert len(found) == 8
    assert all(one.agrees for one in found)
    assert {one.cost for one in found} == {None}


def test_a_restatement_shows_what_changed_by_service_and_by_day():
    first = [costing("1"), costing("2", ServiceName="AmazonS3"), costing("5", ServiceName="X")]
    imported(focus_csv(first))
    second = [costing("1"), costing("2.5", ServiceName="AmazonS3"), costing("4", ServiceName="Y")]
    imported(focus_csv(second))
    before, after = BillingPeriod.objects.get().versions.order_by("number")

    by_service = version_difference(before, after, view="service_name", basis=Basis.BILLED)
    changes = {one.group: one.change for one in by_service.groups}
    assert changes == {"X": Decimal(-5), "Y": Decimal(4), "AmazonS3": Decimal("0.5")}
    assert by_service.unchanged == 1
    (day,) = version_difference(before, after, view="day", basis=Basis.BILLED).groups
    assert (day.group, day.change) == ("2026-05-04", Decimal("-0.5"))


def storage(amount: str, usage: str, quantity: str, unit: str, **columns: str) -> dict[str, str]:
    return costing(
        amount,
        ServiceName="AmazonS3",
        ServiceCategory="Storage",
        x_UsageType=usage,
        ConsumedQuantity=quantity,
        ConsumedUnit=unit,
        **columns,
    )


def test_findings_state_what_waste_costs_and_what_would_be_saved():
    gib = "931.3225746154785"  # one TB in GiB
    rows = [
        storage("23", "TimedStorage-ByteHrs", gib, "GB-Mo", ResourceId="bucket-a"),
        storage("10", "TimedStorage-ByteHrs", gib, "GB-Mo", ResourceId="bucket-b"),
        storage("400", "Requests-Tier2", "1000000000", "Requests", ResourceId="bucket-a"),
        costing(
            "45",
            x_UsageType="NatGateway-Bytes",
            ServiceCategory="Networking",
            ConsumedQuantity="1000",
            ConsumedUnit="GB",
        ),
        costing(
            "20",
            x_UsageType="USW2-EUC1-AWS-Out-Bytes",
            ServiceCategory="Networking",
            ConsumedQuantity="1000",
            ConsumedUnit="GB",
        ),
        charge(x_UsageType="UnusedBox:p5.48xlarge", ConsumedQuantity="2", EffectiveCost="110"),
    ]
    imported(focus_csv(rows))

    found = {one.code: one for one in spend_findings(organisation().pk, month_on=MAY)}

    assert found["transfer_inter_region"].saving == 20
    assert found["nat_bytes"].saving == 45
    assert found["idle_capacity"].cost == 110
    assert found["idle_capacity"].facts["hours"] == "16.0"
    assert found["hot_storage_unread"].saving == Decimal("4.50")  # 45 % of bucket-b's 10
    assert found["hot_storage_unread"].facts["tb_months"] == "1.000"
    # two TB-months are 7,812.5 shards of 256 MB: 242,187.5 GETs a month instead of a billion
    assert round(found["small_reads"].saving, 9) == 400 * (1 - Decimal("242187.5") / 10**9)
    assert found["untagged"].facts["percent"] == "100"


def test_a_bill_without_waste_gives_no_findings_of_it():
    imported(focus_csv([costing("5", Tags='{"team": "a"}')]))

    codes = {one.code for one in spend_findings(organisation().pk, month_on=MAY)}

    assert codes == {"unallocated"}


def test_the_pages_show_the_books():
    client = signed_in(person(role=OrganisationRole.ADMIN))
    imported(focus_csv([costing("1.10")]))
    imported(focus_csv([costing("1.30")]))
    period = BillingPeriod.objects.get()

    posted = {
        "source": str(Source.objects.get().pk),
        "month": "2026-05",
        "amount": "1.31",
        "currency": "usd",
        "tolerance": "0",
    }
    assert client.post(reverse("reconciliation"), posted).status_code == 302
    assert "-0.01 USD" in client.get(reverse("reconciliation")).content.decode()
    assert (
        reverse("period_versions", args=[period.pk])
        in client.get(reverse("reconciliation")).content.decode()
    )
    page = client.get(reverse("period_versions", args=[period.pk]), {"from": "1", "to": "2"})
    assert "0.2 USD" in page.content.decode()
    assert client.get(reverse("findings")).status_code == 200
    elsewhere = client.get(reverse("findings"), {"month": "2020-01"}).content.decode()
    assert "There are no charges in 2020-01" in elsewhere


def test_a_month_that_nobody_stated_fills_the_form_in_by_its_link():
    client = signed_in(person(role=OrganisationRole.ADMIN))
    imported(focus_csv([costing("1.10")]))
    Source.objects.create(organisation=organisation(), name="empty")
    source = Source.objects.get(name="aws")

    page = client.get(reverse("reconciliation")).content.decode()
    link = f"?source={source.pk}&amp;month=2026-05&amp;currency=USD#state"
    assert link in page
    assert ">empty<" not in page
    asked = {"source": str(source.pk), "month": "2026-05", "currency": "USD"}
    form = client.get(reverse("reconciliation"), asked).context["form"]
    assert {name: form[name].value() for name in asked} == asked
