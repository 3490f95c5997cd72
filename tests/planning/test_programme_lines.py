"""Every line of a programme counts in its odds; no line outside it counts in a share."""

from decimal import Decimal
from typing import Any

import pytest

from planning.models import PlanVersion
from planning.services import draft_plan
from projects.access import system_actor
from tests import builders
from tests.planning.builders import (
    answer,
    make_choice,
    make_estimate,
    make_project,
    make_spec,
)

pytestmark = pytest.mark.django_db

FEE = {"amount": "1000", "currency": "USD"}


def programme_of(*lines: dict[str, Any]) -> Decimal:
    """The median programme beside the median main run; nothing is uncertain but the lines."""
    found = answer(make_spec(lines=list(lines)))
    programme, cost = found.programme_cost(), found.cost()
    assert programme is not None
    assert cost is not None
    return programme.amount - cost.amount


def test_a_share_of_the_lines_above_is_in_the_programme() -> None:
    main = answer(make_spec(lines=[])).cost()
    assert main is not None
    experiments = {"key": "experiments", "fraction": "0.2"}
    share = {"key": "legal", "fraction": "0.1", "base": "subtotal"}
    found = programme_of(experiments, share)
    assert float(found / main.amount) == pytest.approx(0.2 + 0.1 * 1.2, rel=0.02)


def test_a_share_of_the_lines_above_follows_fixed_amounts_too() -> None:
    fee, share = {"key": "fee", "amount": FEE}, {"key": "x", "fraction": "1", "base": "subtotal"}
    main = answer(make_spec(lines=[])).cost()
    assert main is not None
    found = programme_of(fee, share)
    assert float(found) == pytest.approx(float(main.amount) + 2_000, rel=0.02)


def test_a_contingency_of_a_fixed_amount_is_no_spending() -> None:
    assert abs(programme_of({"key": "contingency", "amount": FEE})) < 1


def test_an_estimate_and_its_plan_agree_on_every_line() -> None:
    project = make_project(builders.organisation())
    actor = system_actor(project.organisation_id, "test")
    lines = [
        {"key": "main_run", "fraction": "1"},
        {"key": "gift", "fraction": "0.5", "in_programme": False},
        {"key": "experiments", "fraction": "0.2"},
        {"key": "contingency", "fraction": "0.2", "base": "subtotal"},
    ]
    estimate = make_estimate(actor, lines=lines)
    estimated = {line["key"]: line["amount"] for line in estimate.result["cost"]["lines"]}
    version: PlanVersion = draft_plan(actor, project, estimate, make_choice())
    planned = {line.key: format(line.amount, "f") for line in version.lines.all()}
    assert planned == estimated
    assert list(planned) == list(estimated)
