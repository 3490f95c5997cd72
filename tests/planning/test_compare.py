"""Estimates side by side: only those that one may see, never money of two currencies subtracted."""

from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from planning.comparison import Compared, FoundCell, Row, asked_rows, found_rows, pictures
from planning.estimating import Answer
from planning.models import Estimate
from projects.access import Role
from projects.models import User
from projects.records import OrganisationRole
from tests import builders
from tests.planning.builders import make_estimate

pytestmark = pytest.mark.django_db

PAGE = "/estimates/compare/"
EURO = {"price_per_accelerator_hour": {"amount": "2.50", "currency": "EUR"}}


@pytest.fixture
def alice() -> User:
    person = builders.person("alice")
    builders.project("moe", members=[(person, Role.ANALYST)])
    return person


def made(person: User, count: int = 2, **fields: Any) -> list[Estimate]:
    actor = builders.actor(person)
    return [
        make_estimate(actor, name=f"Run {place}", step_mfu=0.4 + place / 20, **fields)
        for place in range(count)
    ]


def compared(*estimates: Estimate) -> list[Compared]:
    return [
        Compared(name=one.name, question=one.spec, answer=Answer.from_document(one.result))
        for one in estimates
    ]


def row(rows: tuple[Row, ...], key: str) -> Row:
    return next(one for one in rows if one.key == key)


def address(*estimates: Estimate) -> str:
    return PAGE + "?ids=" + ",".join(str(one.pk) for one in estimates)


def test_what_differs_from_the_first_is_marked_and_nothing_else(alice: User) -> None:
    asked = asked_rows(compared(*made(alice)))
    marked = {one.key for one in asked for cell in one.cells if getattr(cell, "differs", False)}
    assert marked == {"step_mfu"}


def test_an_input_that_nobody_stated_says_so(alice: User) -> None:
    (one,) = made(alice, 1, goodput=None)
    asked = asked_rows(compared(one, one))
    assert [getattr(cell, "is_stated", None) for cell in row(asked, "goodput").cells] == [False] * 2
    assert [getattr(cell, "is_stated", None) for cell in row(asked, "step_mfu").cells] == [True] * 2


def test_differences_are_absolute_and_relative_to_the_first(alice: User) -> None:
    first, second = made(alice)
    cells = row(found_rows(compared(first, second)), "cost").cells
    assert isinstance(cells[1], FoundCell)
    costs = [Decimal(one.result["cost"]["p50"]) for one in (first, second)]
    assert cells[1].change == costs[1] - costs[0]
    assert cells[1].change_fraction == pytest.approx(0.4 / 0.45 - 1, abs=1e-6)


def test_the_programme_as_listed_and_all_in_are_the_sums_of_their_lines(alice: User) -> None:
    storage = [
        {
            "tier": "warm",
            "terabytes": "100",
            "months": "2",
            "price_per_tb_month": {"amount": "23", "currency": "USD"},
        }
    ]
    (one,) = made(alice, 1, storage=storage)
    rows = found_rows(compared(one, one))
    main = Decimal(one.result["cost"]["p50"])
    listed, all_in = (row(rows, key).cells[0] for key in ("listed", "all_in"))
    assert isinstance(listed, FoundCell)
    assert isinstance(all_in, FoundCell)
    assert listed.p50 == main * Decimal("1.74")
    assert all_in.p50 == main * Decimal("1.74") + 4600


def test_money_of_two_currencies_is_shown_and_not_subtracted(alice: User) -> None:
    (dollars,) = made(alice, 1)
    (euros,) = made(alice, 1, **EURO)
    rows = found_rows(compared(dollars, euros))
    second = row(rows, "cost").cells[1]
    assert isinstance(second, FoundCell)
    assert (second.currency, second.change, second.change_fraction) == ("EUR", None, None)
    days = row(rows, "days").cells[1]
    assert isinstance(days, FoundCell)
    assert days.change == 0
    cost = next(one for one in pictures(rows) if one.key == "cost")
    assert cost.has_mixed_currencies
    assert cost.bars == ()
    page = builders.signed_in(alice).get(address(dollars, euros)).content.decode()
    assert "Mixed currencies" in page
    assert "the currencies differ" in page


def test_bars_share_one_scale(alice: User) -> None:
    found = pictures(found_rows(compared(*made(alice, 4))))
    assert [one.key for one in found] == ["cost", "facility_energy_kwh", "scope_2_location_kgco2e"]
    first = found[0]
    assert [bar.letter for bar in first.bars] == ["A", "B", "C", "D"]
    assert first.bars[0].p90_at == "100.000%"


def test_an_unknown_quantity_stays_unknown(alice: User) -> None:
    (known,) = made(alice, 1)
    (unknown,) = made(alice, 1, grid_g_per_kwh=None)
    cells = row(found_rows(compared(known, unknown)), "scope_2_location_kgco2e").cells
    assert isinstance(cells[1], FoundCell)
    assert (cells[1].p50, cells[1].change) == (None, None)


def test_two_to_four_are_shown_side_by_side_with_their_findings(alice: User) -> None:
    client = builders.signed_in(alice)
    estimates = made(alice, 4)
    for count in (2, 3, 4):
        page = client.get(address(*estimates[:count]))
        assert page.status_code == 200
        assert f"Run {count - 1}" in page.content.decode()
    assert "They differ in" in page.content.decode()


def test_ids_may_be_repeated_as_a_form_sends_them(alice: User) -> None:
    first, second = made(alice)
    page = builders.signed_in(alice).get(PAGE, {"ids": [str(first.pk), str(second.pk)]})
    assert "Run 1" in page.content.decode()


def test_more_than_four_are_refused_with_the_limit(alice: User) -> None:
    page = builders.signed_in(alice).get(address(*made(alice, 5)))
    assert page.status_code == 400
    assert "choose at most 4" in page.content.decode()


def test_one_alone_asks_for_another_and_none_offers_a_choice(alice: User) -> None:
    client = builders.signed_in(alice)
    first, _second = made(alice)
    assert "at least two" in client.get(address(first, first)).content.decode()
    page = client.get(PAGE)
    assert page.status_code == 200
    assert str(first.pk) in page.content.decode()


def test_an_estimate_of_somebody_else_is_not_to_be_found(alice: User) -> None:
    first, second = made(alice)
    bob = builders.signed_in(builders.person("bob"))
    assert bob.get(address(first, second)).status_code == 404
    assert str(first.pk) not in bob.get(PAGE).content.decode()
    outsider = builders.person(
        "carol", role=OrganisationRole.ADMIN, of=builders.organisation("other")
    )
    assert builders.signed_in(outsider).get(address(first, second)).status_code == 404


@pytest.mark.parametrize("ids", ["x", "1,2", str(uuid4())])
def test_an_id_that_names_nothing_is_not_found(alice: User, ids: str) -> None:
    assert builders.signed_in(alice).get(f"{PAGE}?ids={ids}").status_code == 404


def test_a_stranger_is_sent_to_sign_in(alice: User) -> None:
    assert Client().get(PAGE)["Location"].startswith("/login/")
