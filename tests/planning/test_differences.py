"""What changed between two versions of a plan is told line by line, and currencies never mix."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from planning.differences import (
    Change,
    FrozenEstimate,
    PlanDifferences,
    input_differences,
    plan_differences,
)
from planning.documents import differences_document, plan_document
from planning.line_changes import LineChange, NewLine, add_line, change_lines, remove_line
from planning.models import PlanVersion
from planning.records import LineBase, PlanRecord
from planning.selectors import plan_record, version_differences
from planning.services import approve_plan, draft_plan
from projects.access import system_actor
from projects.models import Project
from projects.records import Actor
from projects.selectors import the_organisation
from tests.planning.builders import AS_OF, make_choice, make_draft, make_estimate, make_project
from tests.planning.test_burndown import make_plan

ESTIMATE = FrozenEstimate(question={"step_mfu": 0.42}, answer={"assumptions": {}})


def compare(before: PlanRecord, after: PlanRecord, **fields: Any) -> PlanDifferences:
    estimates = {"before_estimate": ESTIMATE, "after_estimate": ESTIMATE} | fields
    return plan_differences(before, after, **estimates)


def test_the_same_version_has_no_differences() -> None:
    found = compare(make_plan(), make_plan())
    assert found.is_empty
    assert found.lines == ()
    assert {total.change for total in found.totals if total.unit != "kgco2e"} == {Decimal(0), 0.0}


def test_a_changed_amount_is_told_with_its_change() -> None:
    (line,) = compare(make_plan(extra="90"), make_plan(extra="100.5")).lines
    assert (line.key, line.change, line.amount_change) == (
        "contingency",
        Change.CHANGED,
        Decimal("10.5"),
    )
    assert line.amount_change
    assert not line.are_dates_changed
    assert not line.is_share_changed


def test_moved_dates_are_told_though_the_amount_stays() -> None:
    plan = make_plan()
    moved = replace(plan.lines[1], ends_on=plan.lines[1].ends_on + timedelta(days=3))
    (line,) = compare(plan, replace(plan, lines=(plan.lines[0], moved))).lines
    assert line.are_dates_changed
    assert line.amount_change == 0


def test_added_and_removed_lines_are_told_apart() -> None:
    plan = make_plan()
    own = replace(plan.lines[1], key="own-legal", name="Legal", amount=Decimal(7))
    found = compare(plan, replace(plan, lines=(plan.lines[0], own)))
    assert [(line.key, line.change, line.amount_change) for line in found.lines] == [
        ("own-legal", Change.ADDED, Decimal(7)),
        ("contingency", Change.REMOVED, Decimal(-90)),
    ]


def test_amounts_of_two_currencies_are_never_subtracted() -> None:
    found = compare(make_plan(), replace(make_plan(), currency="EUR"))
    assert {line.amount_change for line in found.lines} == {None}
    assert {total.change for total in found.totals if total.unit == "money"} == {None}
    assert not found.is_empty


def test_an_unknown_total_has_an_unknown_change() -> None:
    found = {total.key: total for total in compare(make_plan(), make_plan()).totals}
    assert found["scope_2_location_kgco2e"].change is None
    assert found["facility_energy_kwh"].change == 0.0


def test_inputs_are_named_by_their_path_and_names_are_no_inputs() -> None:
    before = {"name": "a", "step_mfu": 0.42, "model": {"params": 8e9}, "storage": [{"tier": "hot"}]}
    after = {"name": "b", "step_mfu": 0.45, "model": {"params": 8e9}, "region": "aws:us-east-1"}
    found = {one.field: (one.before, one.after) for one in input_differences(before, after)}
    assert found == {
        "step_mfu": (0.42, 0.45),
        "region": (None, "aws:us-east-1"),
        "storage.0.tier": ("hot", None),
    }


def test_an_assumption_that_moved_by_itself_is_told_apart_from_a_stated_input() -> None:
    def estimate(mfu: float, pue: float, **question: Any) -> FrozenEstimate:
        used = {"step_mfu": {"p50": mfu}, "pue": {"p50": pue}}
        return FrozenEstimate(question=question, answer={"assumptions": used})

    found = compare(
        make_plan(),
        make_plan(),
        before_estimate=estimate(0.42, 1.1, step_mfu=0.42),
        after_estimate=estimate(0.45, 1.2, step_mfu=0.45),
    )
    assert [one.field for one in found.inputs] == ["step_mfu"]
    assert [(one.field, one.before, one.after) for one in found.assumptions] == [("pue", 1.1, 1.2)]


# --- with tables ---------------------------------------------------------------------------------


@pytest.fixture
def actor(db: None) -> Actor:
    return system_actor(the_organisation().pk, "tests")


@pytest.fixture
def project(db: None) -> Project:
    return make_project(the_organisation())


def redraft(actor: Actor, project: Project, *, level: str = "p50", **spec: Any) -> PlanVersion:
    return draft_plan(actor, project, make_estimate(actor, **spec), make_choice(level=level))


def test_each_version_is_compared_with_the_one_that_it_replaced(
    actor: Actor, project: Project
) -> None:
    approve_plan(actor, make_draft(actor, project), as_of=AS_OF)
    second = redraft(actor, project, level="p80", step_mfu=0.45)
    change_lines(actor, second, [LineChange(key="evaluation", fraction=Decimal("0.1"))])
    remove_line(actor, second, "distillation")
    own = NewLine(name="Legal", base=LineBase.AMOUNT, amount=Decimal(5_000))
    add_line(actor, second, own)
    approve_plan(actor, second, as_of=AS_OF.replace(day=2), reason="another MFU")
    third = redraft(actor, project, step_mfu=0.45)

    found = version_differences(project)

    assert set(found) == {2, 3}
    assert (found[2].before_number, found[3].before_number) == (1, 2)
    changes = {line.key: line.change for line in found[2].lines}
    assert changes["own-legal"] is Change.ADDED
    assert changes["distillation"] is Change.REMOVED
    assert changes["evaluation"] is Change.CHANGED
    assert [(one.field, one.before, one.after) for one in found[2].inputs] == [
        ("step_mfu", 0.55, 0.45)
    ]
    assert found[2].is_level_changed
    assert found[3].inputs == ()
    assert third.number == 3


def test_the_document_tells_percentile_and_differences(actor: Actor, project: Project) -> None:
    approve_plan(actor, make_draft(actor, project), as_of=AS_OF)
    second = redraft(actor, project, step_mfu=0.45)
    found = version_differences(project)[2]
    record = plan_record(PlanVersion.objects.get(pk=second.pk))
    document = plan_document(record, found)
    assert document["level"] == "p50"
    assert document["differences"] == differences_document(found)
    assert document["differences"]["inputs"] == [
        {"field": "step_mfu", "before": 0.55, "after": 0.45}
    ]
    total = document["differences"]["totals"]["main_run_cost"]
    assert Decimal(total["after"]) - Decimal(total["before"]) == Decimal(total["change"]) > 0
