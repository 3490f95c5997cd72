"""Which price is in force on a day, and how prices come into the books."""

from datetime import UTC, date, datetime

import pytest
from django.core.exceptions import PermissionDenied

from audit.models import AuditEntry
from billing.models import Price
from billing.price_records import PricesRefusedError
from billing.price_selectors import price_history, price_in_force, prices_in_force
from billing.services import add_price, add_prices, ensure_price_book, import_prices, withdraw_price
from formulae.money import Money
from tests import builders
from tests.billing.builders import operator
from tests.billing.price_builders import price_csv, price_row, price_wish

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 6, 1, tzinfo=UTC)


def h100(on: str = "2026-06-01", **parts: str):
    return price_in_force(
        builders.organisation().pk,
        cost_class="accelerator",
        accelerator_key="h100-sxm-80gb",
        on=date.fromisoformat(on),
        **parts,
    )


def test_a_price_holds_from_its_day_until_a_later_one():
    add_price(operator(), price_wish("2.50", valid_from="2026-01-01"))
    add_price(operator(), price_wish("2.10", valid_from="2026-04-01"))

    assert h100("2026-03-31").price == Money.of("2.50", "USD")
    assert h100("2026-03-31").valid_to == date(2026, 4, 1)
    assert h100("2026-04-01").price == Money.of("2.10", "USD")
    assert h100("2026-04-01").valid_to is None


def test_a_price_in_another_currency_follows_too():
    add_price(operator(), price_wish("2.50", valid_from="2026-01-01"))
    add_price(operator(), price_wish("18", currency="CNY", valid_from="2026-04-01"))

    assert h100("2026-05-01").price == Money.of("18", "CNY")


def test_an_ended_price_does_not_bring_an_older_one_back():
    add_price(operator(), price_wish("2.50", valid_from="2026-01-01", provider="aws"))
    add_price(
        operator(),
        price_wish("2.10", valid_from="2026-02-01", valid_to="2026-03-01", provider="aws"),
    )

    assert h100("2026-02-28", provider="aws").price == Money.of("2.10", "USD")
    assert h100("2026-03-01", provider="aws").is_shipped


def test_an_own_price_beats_the_shipped_one():
    shipped = h100(provider="aws", region="us-east-1")
    assert shipped.is_shipped
    assert shipped.price_id is None

    add_price(operator(), price_wish("2.50"))

    assert h100(provider="aws", region="us-east-1").price == Money.of("2.50", "USD")
    assert h100(provider="aws", region="us-east-1").book == "Own prices"


def test_the_same_region_beats_any_region_and_no_other_region_answers():
    add_price(operator(), price_wish("3", provider="aws"))
    add_price(operator(), price_wish("2", provider="aws", region="us-west-2"))

    assert h100(provider="aws", region="us-west-2").price == Money.of("2", "USD")
    assert h100(provider="aws", region="eu-west-1").price == Money.of("3", "USD")
    assert h100(provider="aws").price == Money.of("3", "USD")


def test_a_price_of_another_place_or_kind_does_not_answer():
    assert h100(provider="aws", region="nowhere-1") is None
    assert h100(provider="aws", region="us-east-1", purchase="spot") is None
    assert h100("2020-01-01") is None


def test_case_of_provider_and_region_does_not_matter():
    assert h100(provider="AWS", region="US-EAST-1") == h100(provider="aws", region="us-east-1")


def test_the_prices_of_a_day_leave_out_shipped_ones_with_an_own_one():
    add_price(
        operator(),
        price_wish("5", provider="aws", region="us-east-1", instance_type="p5.48xlarge"),
    )

    found = prices_in_force(
        builders.organisation().pk, on=date(2026, 6, 1), cost_class="accelerator"
    )

    same = [one for one in found if one.key[1:5] == found_key()]
    assert [one.price for one in same] == [Money.of("5", "USD")]
    assert len(found) > 20


def found_key():
    return ("aws", "us-east-1", "h100-sxm-80gb", "p5.48xlarge")


def test_a_history_holds_own_and_shipped_prices_newest_first():
    wish = price_wish("5", provider="aws", region="us-east-1", instance_type="p5.48xlarge")
    add_price(operator(), wish)

    found = price_history(builders.organisation().pk, wish.key)

    assert [one.valid_from for one in found] == [
        date(2026, 1, 1),
        date(2025, 6, 1),
        date(2023, 7, 26),
    ]
    assert [one.is_shipped for one in found] == [False, True, True]
    assert found[2].valid_to == date(2025, 6, 1)


def test_the_same_price_twice_is_one_price():
    first = add_price(operator(), price_wish())
    assert add_price(operator(), price_wish()) == first
    assert Price.objects.count() == 1


def test_another_price_from_the_same_day_is_refused_until_the_first_is_withdrawn():
    wrong = add_price(operator(), price_wish("25.0"))
    with pytest.raises(PricesRefusedError, match=r"2\.5 USD / accelerator_h.*25 USD.*withdraw"):
        add_price(operator(), price_wish("2.50"))

    withdraw_price(operator(), wrong.pk, now=NOW, reason="a slip")
    add_price(operator(), price_wish("2.50"))

    assert h100().price == Money.of("2.50", "USD")
    assert Price.objects.count() == 2
    entry = AuditEntry.objects.get(action="price.withdraw")
    assert (entry.reason, entry.before["price"]) == ("a slip", "25")


def test_an_unknown_accelerator_is_refused_with_near_names():
    with pytest.raises(PricesRefusedError, match=r"h100-sxm.*h100-sxm-80gb"):
        add_price(operator(), price_wish(accelerator_key="h100-sxm"))


def test_a_price_list_comes_in_whole_and_only_once():
    content = price_csv(
        price_row(),
        price_row(valid_from="2026-03-01", price="2.25"),
        {
            "cost_class": "storage_object",
            "unit": "tb_month",
            "price": "21",
            "valid_from": "2026-01-01",
            "source": "Contract 12",
        },
    )

    first = import_prices(operator(), content, file="a.csv", book="Contract 12")
    again = import_prices(operator(), content, file="a.csv", book="Contract 12")

    assert (first.rows, first.added, first.unchanged) == (3, 3, 0)
    assert (again.rows, again.added, again.unchanged) == (3, 0, 3)
    assert Price.objects.count() == 3
    entry = AuditEntry.objects.get(action="prices.import")
    assert (entry.after["file"], entry.after["added"]) == ("a.csv", 3)


def test_a_book_gives_its_currency_to_rows_that_name_none():
    ensure_price_book(operator(), "Frankfurt", currency="EUR")
    row = {name: text for name, text in price_row().items() if name != "currency"}

    import_prices(operator(), price_csv(row), book="Frankfurt")

    assert Price.objects.get().currency == "EUR"


def test_a_file_with_a_byte_order_mark_and_windows_lines_is_read():
    content = b"\xef\xbb\xbf" + price_csv(price_row(), newline="\r\n")
    assert import_prices(operator(), content).added == 1


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"price": "2,50"}, r"row 3"),
        ({"price": "free"}, r"row 3, column price: 'free'.*USD / accelerator_h.*12\.50"),
        ({"price": "-1"}, r"row 3, column price: '-1'.*0 or more"),
        ({"price": "0.1234567890123456789"}, r"column price.*18 decimals"),
        ({"currency": "DOL"}, r"row 3, column currency: 'DOL'.*ISO 4217"),
        ({"unit": "hour"}, r"row 3, column unit: 'hour'.*accelerator_h"),
        ({"unit": "gb"}, r"column unit: 'gb'.*accelerator_h"),
        ({"cost_class": "gpu"}, r"column cost_class: 'gpu'.*accelerator"),
        ({"valid_from": "01/02/2026"}, r"column valid_from: '01/02/2026'.*2026-03-31"),
        ({"valid_from": "2026-02-30"}, r"column valid_from.*no such day"),
        ({"valid_to": "2025-12-31"}, r"column valid_to.*after valid_from"),
        ({"source": ""}, r"row 3, column source.*where the price comes from"),
        ({"purchase": "lease"}, r"column purchase: 'lease'.*on_demand"),
        ({"accelerator_key": "h100"}, r"row 3, column accelerator_key: 'h100'"),
        ({"source_date": "May"}, r"column source_date: 'May'.*2026-03"),
        ({"price": "2.60"}, r"row 3, column price.*2\.6 USD.*2\.5 USD"),
    ],
)
def test_a_wrong_row_refuses_the_file_and_says_where_and_what_to_do(changed, said):
    content = price_csv(price_row(), price_row(**changed))

    with pytest.raises(PricesRefusedError, match=rf"list\.csv, {said}|list\.csv.*{said}"):
        import_prices(operator(), content, file="list.csv")
    assert not Price.objects.exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b"\xff\xfe", "UTF-8"),
        (price_csv(price_row(note="a\0b")), "NUL"),
        (b"cost_class,unit\n", "column price"),
        (price_csv(price_row(colour="red")), "column colour: there is no such column"),
        (b'cost_class,unit,price,valid_from,source\n"', "CSV"),
    ],
)
def test_what_is_no_price_list_is_refused(content, said):
    with pytest.raises(PricesRefusedError, match=said):
        import_prices(operator(), content, file="list.csv")


def test_a_book_cannot_take_the_name_of_the_shipped_list():
    with pytest.raises(PricesRefusedError, match="Shipped List"):
        add_prices(operator(), [price_wish()], book="Shipped List")


def test_an_own_price_by_the_month_leaves_the_shipped_one_by_the_gigabyte():
    add_price(
        operator(),
        price_wish("500", cost_class="logging", unit="month", accelerator_key=""),
    )
    asked = {"cost_class": "logging", "on": date(2026, 6, 1)}

    by_month = price_in_force(builders.organisation().pk, unit="month", **asked)
    by_gigabyte = price_in_force(builders.organisation().pk, unit="gb", **asked)
    assert by_month.price == Money.of(500, "USD")
    assert by_gigabyte.is_shipped


def test_prices_are_each_organisations_own():
    add_price(operator(), price_wish())
    other = builders.organisation("other")

    assert price_in_force(
        other.pk,
        cost_class="accelerator",
        accelerator_key="h100-sxm-80gb",
        on=date(2026, 6, 1),
    ).is_shipped


def test_a_member_cannot_state_prices():
    member = builders.actor(builders.person("moe"))
    with pytest.raises(PermissionDenied):
        add_price(member, price_wish())
    with pytest.raises(PermissionDenied):
        import_prices(member, price_csv(price_row()))
