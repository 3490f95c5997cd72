"""The bill around the accelerators: exact lines, no partial sum, every missing thing named."""

from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from billing import price_selectors
from billing.price_records import Converted, ExchangeRateRecord, PriceRecord
from formulae.money import Money
from planning.own_hardware import OwnPower, own_hardware
from planning.spec import SpecError, parse_request
from planning.whole_bill import BillTerms, WholeBill, bill_lines
from planning.whole_bill_spec import WholeBillError, WholeBillSpec

ORGANISATION = UUID(int=1)
ON = date(2026, 10, 1)
POWER = OwnPower(power_w=700, host_factor=1.5, pue=1.2)

QUESTION = {"model": {"params": 7e9}, "tokens": 1e12, "accelerator": "H100"}


def usd(amount: str | int) -> Money:
    return Money.of(amount, "USD")


def make_terms(**fields: Any) -> BillTerms:
    return BillTerms(
        **({"currency": "USD", "on": ON, "months": Decimal(1), "provider": "aws"} | fields)
    )


def make_price(cost_class: str, unit: str, price: Money, **fields: Any) -> PriceRecord:
    return PriceRecord(
        **(
            {
                "price_id": None,
                "book": "Shipped list",
                "cost_class": cost_class,
                "provider": "aws",
                "region": "",
                "accelerator_key": "",
                "instance_type": "",
                "purchase": "on_demand",
                "unit": unit,
                "price": price,
                "valid_from": date(2024, 1, 1),
                "valid_to": None,
                "source": "price page",
                "source_date": "2026",
            }
            | fields
        )
    )


@pytest.fixture
def books(monkeypatch: pytest.MonkeyPatch) -> dict[str, PriceRecord]:
    """The prices in force by class of charges, empty at first; one rate, 1 EUR = 1.10 USD."""
    prices: dict[str, PriceRecord] = {}

    def price_in_force(_organisation_id: UUID, *, cost_class: str, **_asked: Any) -> Any:
        return prices.get(cost_class)

    def converted(_organisation_id: UUID, money: Money, *, currency: str, on: date) -> Any:
        if (money.currency, currency) != ("EUR", "USD"):
            return None
        rate = ExchangeRateRecord(
            base="EUR", quote="USD", rate=Decimal("1.10"), on_date=on, source="ECB"
        )
        return Converted(money=usd(0) + Money.of(money.amount * rate.rate, "USD"), rate=rate)

    monkeypatch.setattr(price_selectors, "price_in_force", price_in_force)
    monkeypatch.setattr(price_selectors, "converted", converted)
    return prices


def draw(document: dict[str, Any], **terms: Any) -> WholeBill:
    return bill_lines(ORGANISATION, WholeBillSpec.model_validate(document), make_terms(**terms))


def money(amount: str, currency: str = "USD") -> dict[str, str]:
    return {"amount": amount, "currency": currency}


def three_tiers(hot_price: str) -> list[dict[str, Any]]:
    return [
        {"tier": "hot", "terabytes": 200, "price_per_tb_month": money(hot_price)},
        {"tier": "warm", "terabytes": 1350, "price_per_tb_month": money("23")},
        {"tier": "cold", "terabytes": 2000, "price_per_tb_month": money("1")},
    ]


@pytest.mark.usefixtures("books")
@pytest.mark.parametrize(("hot_price", "total"), [("150", 63_050), ("300", 93_050)])
def test_the_three_tiers_of_the_chapter_cost_63050_to_93050_a_month(
    hot_price: str, total: int
) -> None:
    bill = draw({"storage": three_tiers(hot_price)})
    assert [(line.key, line.cost_class) for line in bill.lines] == [
        ("storage_hot", "storage_file"),
        ("storage_warm", "storage_object"),
        ("storage_cold", "storage_archive"),
    ]
    assert [line.amount for line in bill.lines][1:] == [usd(31_050), usd(2_000)]
    assert bill.total == usd(total)
    assert bill.missing == ()


@pytest.mark.usefixtures("books")
def test_storage_is_kept_for_the_months_of_the_project_or_its_own() -> None:
    stored = three_tiers("150")[:1]
    assert draw({"storage": stored}, months=Decimal("2.5")).total == usd(75_000)
    own = [stored[0] | {"months": 12}]
    bill = draw({"storage": own}, months=Decimal("2.5"))
    assert bill.total == usd(360_000)
    assert bill.lines[0].quantity == 2_400
    assert "12 months" in bill.lines[0].note


@pytest.mark.usefixtures("books")
def test_a_missing_price_leaves_the_bill_without_a_total_and_says_why() -> None:
    stored = three_tiers("150")
    del stored[1]["price_per_tb_month"]
    bill = draw({"storage": stored}, region="eu-north-1")
    warm = bill.lines[1]
    assert (warm.price, warm.amount, bill.total) == (None, None, None)
    assert bill.lines[0].amount == usd(30_000)
    (missing,) = bill.missing
    assert (missing.code, missing.where) == ("price_missing", "storage_warm")
    assert "Object storage" in missing.message
    assert "per TB and month" in missing.message
    assert "aws, eu-north-1, 2026-10-01" in missing.message
    assert missing.message in warm.note


def test_a_price_that_is_not_stated_comes_from_the_book_and_names_it(
    books: dict[str, PriceRecord],
) -> None:
    books["storage_object"] = make_price(
        "storage_object", "tb_month", usd(23), region="us-east-1", instance_type="S3 Standard"
    )
    bill = draw({"storage": [{"tier": "warm", "terabytes": "1350"}]}, region="us-east-1")
    assert bill.total == usd(31_050)
    source = bill.lines[0].price_source
    assert source == (
        "Shipped list; aws, us-east-1; S3 Standard; from 2024-01-01; price page; 2026"
    )


def test_a_price_of_some_place_says_so_where_the_plan_names_none(
    books: dict[str, PriceRecord],
) -> None:
    books["egress"] = make_price("egress", "gb", usd("0.09"), region="us-east-1")
    moved = {"transfer": [{"kind": "egress", "terabytes": 10}]}
    assert "names no place" in draw(moved, provider="").lines[0].note
    assert draw(moved, region="us-east-1").lines[0].note == ""


def test_a_price_for_another_unit_is_not_taken(books: dict[str, PriceRecord]) -> None:
    books["logging"] = make_price("logging", "gb", usd("0.50"))
    bill = draw({"services": [{"kind": "logging"}]})
    assert bill.total is None
    assert bill.missing[0].code == "price_missing"


@pytest.mark.usefixtures("books")
def test_another_currency_is_converted_and_the_rate_named() -> None:
    stored = {"tier": "warm", "terabytes": 100, "price_per_tb_month": money("20", "EUR")}
    bill = draw({"storage": [stored]})
    assert (bill.lines[0].price, bill.total) == (usd(22), usd(2_200))
    assert "20 EUR, at 1 EUR = 1.1 USD of 2026-10-01 (ECB)." in bill.lines[0].note


@pytest.mark.usefixtures("books")
def test_a_currency_without_a_rate_leaves_the_bill_without_a_total() -> None:
    stored = three_tiers("150")
    stored[0]["price_per_tb_month"] = money("1000", "SEK")
    bill = draw({"storage": stored})
    assert bill.total is None
    assert bill.missing[0].code == "rate_missing"
    assert "from SEK to USD" in bill.missing[0].message


@pytest.mark.usefixtures("books")
def test_billions_of_requests_cost_thousands() -> None:
    bill = draw(
        {
            "requests": [
                {"verb": "get", "count": 3_000_000_000, "price_per_1000": money("0.0004")},
                {"verb": "put", "count": 1_000_000_000, "price_per_1000": money("0.005")},
            ]
        }
    )
    assert [line.amount for line in bill.lines] == [usd(1_200), usd(5_000)]
    assert bill.lines[0].quantity == 3_000_000
    assert bill.sharding == ()


def test_small_files_are_set_against_shards(books: dict[str, PriceRecord]) -> None:
    books["request_get"] = make_price("request_get", "1000_requests", usd("0.0004"))
    books["request_put"] = make_price("request_put", "1000_requests", usd("0.005"))
    asked = {"verb": "get", "dataset_terabytes": 1350, "object_megabytes": "0.45", "epochs": 1}
    bill = draw({"requests": [asked]})
    assert bill.total == usd(1_200)
    (advice,) = bill.sharding
    assert advice.where == "requests_get"
    assert advice.what_if.as_shards.requests == 5_400_000
    assert advice.what_if.saving == usd("1197.84")
    assert advice.what_if.packing_cost == usd(1_227)
    assert [finding.code for finding in bill.findings] == ["object_size"]


def test_shards_of_an_advised_size_are_left_in_peace(books: dict[str, PriceRecord]) -> None:
    books["request_get"] = make_price("request_get", "1000_requests", usd("0.0004"))
    asked = {"verb": "get", "dataset_terabytes": 1350, "object_megabytes": 250, "epochs": 1}
    bill = draw({"requests": [asked]})
    assert (bill.total, bill.findings, bill.sharding) == (usd("2.16"), (), ())


def test_nat_and_other_regions_are_priced_and_can_be_avoided(
    books: dict[str, PriceRecord],
) -> None:
    books["transfer_intra_region"] = make_price("transfer_intra_region", "gb", usd("0.045"))
    books["transfer_inter_region"] = make_price("transfer_inter_region", "gb", usd("0.02"))
    bill = draw(
        {
            "transfer": [
                {"kind": "nat", "dataset_terabytes": 1350, "epochs": 2},
                {"kind": "inter_region", "terabytes": 200},
                {"kind": "egress", "terabytes": 1, "price_per_gb": money("0.09")},
            ]
        }
    )
    assert [line.amount for line in bill.lines] == [usd(121_500), usd(4_000), usd(90)]
    assert [(found.code, found.where) for found in bill.findings] == [
        ("avoidable_nat", "transfer_nat"),
        ("avoidable_inter_region", "transfer_inter_region"),
    ]


def test_services_cost_a_month_a_share_or_by_the_gigabyte(books: dict[str, PriceRecord]) -> None:
    books["logging"] = make_price("logging", "gb", usd("0.50"))
    bill = draw(
        {
            "services": [
                {"kind": "support", "name": "Business support", "fraction_of_compute": "0.03"},
                {"kind": "logging", "per_month": money("400")},
                {"kind": "logging", "name": "Audit log", "gigabytes_per_month": 1_000},
            ]
        },
        months=Decimal(3),
        compute_cost=usd(1_000_000),
    )
    assert [(line.key, line.name, line.amount) for line in bill.lines] == [
        ("service_support", "Business support", usd(30_000)),
        ("service_logging", "Logging", usd(1_200)),
        ("service_logging_2", "Audit log", usd(1_500)),
    ]
    assert bill.total == usd(32_700)


@pytest.mark.usefixtures("books")
def test_a_share_of_an_unknown_compute_cost_is_unknown() -> None:
    bill = draw({"services": [{"kind": "support", "fraction_of_compute": 0.03}]})
    assert bill.total is None
    assert bill.missing[0].code == "compute_cost_missing"


@pytest.mark.usefixtures("books")
def test_a_bill_of_nothing_is_zero() -> None:
    assert draw({}).total == usd(0)
    assert draw(dict.fromkeys(WholeBillSpec.model_fields)).total == usd(0)


@pytest.mark.usefixtures("books")
def test_an_amount_too_large_to_be_money_names_its_line() -> None:
    stored = three_tiers("150")[:1]
    stored[0] |= {"terabytes": 10**8, "price_per_tb_month": money("1000000000000")}
    with pytest.raises(WholeBillError, match="storage_hot"):
        draw({"storage": stored})


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({"storag": []}, "storag"),
        ({"storage": [{"tier": "tepid", "terabytes": 1}]}, "storage.0.tier"),
        ({"storage": [{"tier": "hot", "terabytes": -1}]}, "storage.0.terabytes"),
        ({"storage": [{"tier": "hot", "terabytes": "NaN"}]}, "storage.0.terabytes"),
        ({"storage": [{"tier": "hot"}]}, "storage.0.terabytes"),
        (
            {"storage": [{"tier": "hot", "terabytes": 1, "price_per_tb_month": {"amount": "1"}}]},
            "storage.0.price_per_tb_month.currency",
        ),
        (
            {"requests": [{"verb": "get", "count": 1, "price_per_1000": money("1", "usd")}]},
            "requests.0.price_per_1000.currency",
        ),
        ({"requests": [{"verb": "get", "count": 1}, {"verb": "get"}]}, "requests.1"),
        ({"requests": [{"verb": "get", "count": 1, "epochs": 2}]}, "requests.0"),
        ({"requests": [{"verb": "head", "count": 1}]}, "requests.0.verb"),
        ({"transfer": [{"kind": "nat"}]}, "transfer.0"),
        ({"transfer": [{"kind": "nat", "terabytes": 1, "epochs": 2}]}, "transfer.0"),
        ({"services": [{"kind": "support", "gigabytes_per_month": 1}]}, "services.0"),
        ({"services": [{"kind": "support", "fraction_of_compute": 3}]}, "services.0"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_its_path(document: dict[str, Any], path: str) -> None:
    with pytest.raises(SpecError) as refused:
        parse_request(QUESTION | document)
    (found,) = refused.value.problems
    assert found == path or found.startswith(f"{path}.fraction")


def own(**fields: Any) -> dict[str, Any]:
    return {
        "capital_per_accelerator": money("43800"),
        "life_years": 5,
        "utilisation_fraction": "0.8",
        "electricity_per_kwh": money("0.10"),
        "staff_per_accelerator_h": money("0.10"),
    } | fields


def price_own(power: OwnPower = POWER, **fields: Any) -> Any:
    spec = WholeBillSpec.model_validate({"on_premises": own(**fields)}).on_premises
    assert spec is not None
    return own_hardware(ORGANISATION, spec, make_terms(), power)


@pytest.mark.usefixtures("books")
def test_own_hardware_costs_capital_electricity_and_staff() -> None:
    found = price_own()
    assert found.price is not None
    assert found.price.capital == usd("1.25")
    assert found.price.electricity == usd("0.126")
    assert found.price.total == usd("1.476")
    assert (found.missing, found.findings) == ((), ())


def test_electricity_without_a_price_takes_the_books(books: dict[str, PriceRecord]) -> None:
    unpriced = price_own(electricity_per_kwh=None)
    assert unpriced.price is None
    assert [finding.code for finding in unpriced.missing] == ["price_missing"]
    books["electricity"] = make_price("electricity", "kwh", usd("0.20"))
    assert price_own(electricity_per_kwh=None).price.electricity == usd("0.252")


@pytest.mark.usefixtures("books")
def test_an_unknown_factor_leaves_the_price_unknown() -> None:
    found = price_own(OwnPower(power_w=700, host_factor=None, pue=None))
    assert found.price is None
    assert [one.code for one in found.missing] == ["host_factor_missing", "pue_missing"]


@pytest.mark.usefixtures("books")
def test_capital_in_another_currency_is_converted() -> None:
    found = price_own(capital_per_accelerator=money("43800", "EUR"))
    assert found.price.capital == usd("1.375")
    assert "1 EUR = 1.1 USD" in found.sources[0]


@pytest.mark.usefixtures("books")
def test_a_price_without_staff_says_so() -> None:
    found = price_own(staff_per_accelerator_h=None)
    assert found.price.total == usd("1.376")
    assert [one.code for one in found.findings] == ["staff_not_stated"]


@pytest.mark.usefixtures("books")
def test_a_pue_below_1_is_refused() -> None:
    with pytest.raises(WholeBillError, match="pue"):
        price_own(OwnPower(power_w=700, host_factor=1.5, pue=0.9))


def test_80_meant_as_a_fraction_is_caught_with_the_way_out() -> None:
    with pytest.raises(SpecError, match=r"on_premises.utilisation_fraction.*0.8 is 80 %"):
        parse_request(QUESTION | {"on_premises": own(utilisation_fraction=80)})


@pytest.mark.django_db
def test_the_shipped_list_prices_a_whole_bill() -> None:
    document = {
        "storage": [{"tier": tier, "terabytes": 10} for tier in ("hot", "warm", "cold")],
        "requests": [{"verb": "get", "count": 1_000}, {"verb": "put", "count": 1_000}],
        "transfer": [{"kind": kind, "terabytes": 1} for kind in ("egress", "inter_region", "nat")],
        "services": [{"kind": "logging", "gigabytes_per_month": 10}],
    }
    bill = draw(document, region="us-east-1")
    assert bill.missing == ()
    assert bill.total is not None
    assert all("us-east-1" in line.price_source for line in bill.lines)
