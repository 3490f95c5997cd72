"""A total in one currency: exact, with every rate named, and n/a rather than a partial sum."""

import io
import json
from decimal import Decimal

import pytest
from django.core.management import CommandError, call_command

from billing.cost_conversion import ConversionError, converted_table
from billing.cost_selectors import costs_grouped
from billing.services import add_exchange_rate
from projects.records import Scope
from tests import builders
from tests.billing.builders import costing, focus_csv, imported, in_month, operator
from tests.billing.price_builders import rate_wish

pytestmark = pytest.mark.django_db
COSTS = ("BilledCost", "EffectiveCost", "ListCost", "ContractedCost")


def bill(*rows: dict[str, str], source: str = "aws") -> None:
    assert imported(focus_csv(rows), source=source).state == "published"


def month(label: str, amount: str, currency: str = "USD") -> dict[str, str]:
    return in_month(label, **dict.fromkeys(COSTS, amount), BillingCurrency=currency)


def table(*group_by: str):
    return costs_grouped(
        builders.organisation().pk,
        group_by=group_by or ("month",),
        basis="billed",
        include_unallocated=True,
    )


def converted(currency: str = "CNY", **options):
    return converted_table(builders.organisation().pk, table(), currency=currency, **options)


def test_each_month_takes_the_rate_of_its_last_day_or_the_newest_before():
    bill(month("2026-05", "10.00"), month("2026-06", "1.10"))
    add_exchange_rate(operator(), rate_wish("7.00", on="2026-05-29"))
    add_exchange_rate(operator(), rate_wish("7.10", on="2026-06-01"))
    add_exchange_rate(operator(), rate_wish("9.99", on="2026-07-01"))

    found = converted()

    assert found.total == Decimal("77.81")
    assert [(one.month, one.rate.rate, str(one.rate.on_date)) for one in found.rates] == [
        ("2026-05", Decimal("7.00"), "2026-05-29"),
        ("2026-06", Decimal("7.10"), "2026-06-01"),
    ]
    assert {one.rate.source for one in found.rates} == {"Bank"}


def test_one_missing_rate_makes_the_total_unknown_and_is_named():
    bill(month("2026-05", "10.00"), month("2026-06", "5.00", "EUR"))
    add_exchange_rate(operator(), rate_wish("7.00", on="2026-05-29"))

    found = converted()

    assert found.total is None
    (missing,) = found.missing
    assert (missing.month, missing.currency, str(missing.on)) == ("2026-06", "EUR", "2026-06-30")


def test_amounts_in_the_wanted_currency_need_no_rate():
    bill(month("2026-05", "10.00"))
    found = converted("USD")
    assert (found.total, found.missing) == (Decimal("10.00"), ())


def test_with_a_day_everything_takes_the_rate_of_that_day():
    bill(month("2026-05", "10.00"), month("2026-06", "10.00"))
    add_exchange_rate(operator(), rate_wish("7.00", on="2026-01-02"))
    add_exchange_rate(operator(), rate_wish("8.00", on="2026-06-15"))
    found = converted(on=rate_wish(on="2026-03-01").on_date)
    assert found.total == Decimal("140")


def test_no_digit_is_lost_on_the_way():
    bill(month("2026-05", "0.000000000000000001"), costing("12345678901.123456789012345678"))
    add_exchange_rate(operator(), rate_wish("0.5"))
    assert converted().total == Decimal("6172839450.561728394506172840")


def test_a_table_that_tells_no_months_apart_is_refused():
    bill(month("2026-05", "10.00"))
    with pytest.raises(ConversionError, match="month or day"):
        converted_table(builders.organisation().pk, table("service_name"), currency="CNY")
    with pytest.raises(ConversionError, match="ISO 4217"):
        converted("XXY")


def test_the_command_and_the_api_add_the_converted_total_with_its_rates():
    bill(month("2026-05", "10.00"))
    add_exchange_rate(operator(), rate_wish("7.00", on="2026-05-29"))
    out = io.StringIO()
    call_command("costs", "--currency", "cny", "--json", stdout=out)
    said = json.loads(out.getvalue())["converted_total"]
    assert (said["currency"], said["cost"], said["missing_rates"]) == ("CNY", "70", [])
    (rate,) = said["rates"]
    assert (rate["month"], rate["date"], rate["rate"], rate["source"]) == (
        "2026-05",
        "2026-05-29",
        "7",
        "Bank",
    )

    client = builders.with_token(builders.token(Scope.READ_COSTS))
    answer = client.get("/api/v1/costs", {"currency": "CNY"})
    assert answer.json()["converted_total"] == said
    assert client.get("/api/v1/costs", {"currency": "BLA"}).status_code == 400
    assert "converted_total" not in client.get("/api/v1/costs").json()


def test_the_command_says_in_words_what_is_missing():
    bill(month("2026-05", "10.00"))
    out = io.StringIO()
    call_command("costs", "--currency", "CNY", stdout=out)
    assert "n/a" in out.getvalue()
    assert "2026-05: no rate of USD by 2026-05-31" in out.getvalue()
    with pytest.raises(CommandError, match="ISO 4217"):
        call_command("costs", "--currency", "BLA", stdout=out)
