"""Dated exchange rates: which one counts, how it is derived, and that none is made up."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from billing.models import ExchangeRate
from billing.price_reading import ECB_SOURCE
from billing.price_records import PricesRefusedError
from billing.price_selectors import converted, exchange_rate
from billing.services import add_exchange_rate, import_exchange_rates, withdraw_exchange_rate
from formulae.money import Money
from tests import builders
from tests.billing.builders import operator
from tests.billing.price_builders import rate_wish

pytestmark = pytest.mark.django_db
ECB = (
    b"Date,USD,JPY,CNY,CYP,\n"
    b"2026-06-05,1.1000,170.00,7.9200,N/A,\n"
    b"2026-06-04,1.0800,169.10,7.8000,N/A,\n"
)


def rate(base: str, quote: str, on: str = "2026-06-07"):
    return exchange_rate(
        builders.organisation().pk, base=base, quote=quote, on=date.fromisoformat(on)
    )


def test_the_newest_rate_of_the_day_or_before_counts():
    add_exchange_rate(operator(), rate_wish("7.00", on="2026-01-02"))
    add_exchange_rate(operator(), rate_wish("7.10", on="2026-02-02"))

    assert rate("USD", "CNY", "2026-02-01").rate == Decimal("7.00")
    assert rate("USD", "CNY", "2026-02-02").rate == Decimal("7.10")
    assert rate("USD", "CNY", "2026-12-31").on_date == date(2026, 2, 2)
    assert rate("USD", "CNY", "2026-01-01") is None


def test_the_opposite_pair_follows_rounded_half_even_to_18_decimals():
    add_exchange_rate(operator(), rate_wish("7"))

    found = rate("CNY", "USD")

    assert found.rate == Decimal("0.142857142857142857")
    assert (found.derivation, found.on_date) == ("inverse", date(2026, 1, 2))


def test_two_rates_meet_in_the_euro_within_seven_days():
    add_exchange_rate(operator(), rate_wish("1.10", base="EUR", quote="USD", on="2026-06-05"))
    add_exchange_rate(operator(), rate_wish("7.92", base="EUR", quote="CNY", on="2026-05-29"))

    found = rate("USD", "CNY")

    assert found.rate == Decimal("7.2")
    assert (found.derivation, found.on_date) == ("cross", date(2026, 5, 29))


def test_rates_further_apart_do_not_meet():
    add_exchange_rate(operator(), rate_wish("1.10", base="EUR", quote="USD", on="2026-06-05"))
    add_exchange_rate(operator(), rate_wish("7.92", base="EUR", quote="CNY", on="2026-05-28"))

    assert rate("USD", "CNY") is None


def test_the_newest_of_stated_inverse_and_cross_wins_and_a_stated_one_at_the_same_age():
    import_exchange_rates(operator(), ECB)
    add_exchange_rate(operator(), rate_wish("7.00", on="2026-01-02"))
    assert rate("USD", "CNY").derivation == "cross"

    add_exchange_rate(operator(), rate_wish("7.25", on="2026-06-05"))
    assert rate("USD", "CNY").derivation == "stated"
    assert rate("USD", "CNY").rate == Decimal("7.25")


def test_money_is_converted_exactly_and_says_by_which_rate():
    add_exchange_rate(operator(), rate_wish("7.1234"))

    found = converted(
        builders.organisation().pk,
        Money.of("1000000.01", "USD"),
        currency="CNY",
        on=date(2026, 1, 5),
    )

    assert found.money == Money.of("7123400.071234", "CNY")
    assert (found.rate.rate, found.rate.on_date) == (Decimal("7.1234"), date(2026, 1, 2))


def test_money_of_the_same_currency_needs_no_rate():
    found = converted(
        builders.organisation().pk, Money.of("1", "USD"), currency="USD", on=date(2026, 1, 5)
    )
    assert (found.money, found.rate) == (Money.of("1", "USD"), None)


def test_without_a_rate_nothing_is_converted():
    missing = converted(
        builders.organisation().pk, Money.of("1", "USD"), currency="CNY", on=date(2026, 1, 5)
    )
    assert missing is None


def test_the_history_of_the_ecb_is_read_as_it_is_and_only_once():
    first = import_exchange_rates(operator(), ECB, file="eurofxref-hist.csv")
    again = import_exchange_rates(operator(), ECB, file="eurofxref-hist.csv")

    assert (first.added, again.added, again.unchanged) == (6, 0, 6)
    found = rate("EUR", "JPY")
    assert (found.rate, found.on_date) == (Decimal("170.00"), date(2026, 6, 5))
    assert found.source == ECB_SOURCE


def test_older_rates_can_be_left_out():
    imported = import_exchange_rates(operator(), ECB, since=date(2026, 6, 5))
    assert imported.added == 3


def test_a_plain_file_is_read():
    content = b"date,base,quote,rate\n2026-01-02,usd,CNY,7.01\n"

    import_exchange_rates(operator(), content, file="bank.csv")

    assert rate("USD", "CNY").source == "bank.csv"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("2026-01-02,USD,CNY,0", r"row 2, column rate: '0'.*above 0, in CNY / USD"),
        ("2026-01-02,USD,CNY,seven", r"row 2, column rate: 'seven'.*CNY / USD"),
        ("2026-01-02,USD,USD,1", r"row 2, column quote.*differ"),
        ("2026-01-02,USD,RMB,7", r"row 2, column quote: 'RMB'.*ISO 4217"),
        ("2 Jan,USD,CNY,7", r"row 2, column date: '2 Jan'"),
        ("2026-01-02,USD,CNY,7.5", r"row 2, column rate: 7\.5 CNY / USD.*7 is known"),
    ],
)
def test_a_wrong_rate_refuses_the_file_and_says_where(row, said):
    add_exchange_rate(operator(), rate_wish("7.00"))

    content = f"date,base,quote,rate\n{row}\n2026-03-01,EUR,USD,1.1\n".encode()

    with pytest.raises(PricesRefusedError, match=rf"fx\.csv, {said}"):
        import_exchange_rates(operator(), content, file="fx.csv")
    assert ExchangeRate.objects.count() == 1


def test_a_withdrawn_rate_counts_no_more():
    wrong = add_exchange_rate(operator(), rate_wish("70"))

    withdraw_exchange_rate(
        operator(), wrong.pk, now=datetime(2026, 6, 1, tzinfo=UTC), reason="a slip"
    )

    assert rate("USD", "CNY") is None
    add_exchange_rate(operator(), rate_wish("7.0"))
    assert rate("USD", "CNY").rate == Decimal("7.0")
