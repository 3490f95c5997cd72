"""Estimates are frozen, plans are drafted, changed, approved; the database keeps the promise."""

import json
from datetime import date
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, InternalError, transaction

from audit.models import AuditEntry
from planning.line_changes import LineChange, change_lines
from planning.models import Estimate, PlanLine, PlanVersion
from planning.selectors import baseline_of, plan_record
from planning.services import PlanError, approve_plan, draft_plan
from planning.spec import SpecError
from projects.access import system_actor
from projects.models import Project
from projects.records import Actor
from projects.selectors import the_organisation
from tests.planning.builders import AS_OF, make_choice, make_draft, make_estimate, make_project

pytestmark = pytest.mark.django_db


@pytest.fixture
def actor() -> Actor:
    return system_actor(the_organisation().pk, "tests")


@pytest.fixture
def project() -> Project:
    return make_project(the_organisation())


def test_the_published_example_takes_49_85_days_and_306277_accelerator_hours(actor: Actor) -> None:
    result = make_estimate(actor).result
    assert result["training_flop"] == 6.0e23
    assert result["accelerator_h"]["p50"] == pytest.approx(306_277, rel=1e-5)
    assert result["days"]["p50"] == pytest.approx(49.85, abs=0.005)


def test_the_same_through_the_command_line() -> None:
    out = StringIO()
    call_command("estimate", preset="chapter-10b-moe", json=True, stdout=out)
    answer = json.loads(out.getvalue())
    assert answer["training_flop"] == 6.0e23
    assert round(answer["accelerator_h"]["p50"]) == 306_277


def test_ranges_give_an_interval_and_a_seed_repeats_it(actor: Actor) -> None:
    spread = {"step_mfu": {"low": 0.4, "mode": 0.5, "high": 0.55}, "seed": 7}
    first, second = make_estimate(actor, **spread).result, make_estimate(actor, **spread).result
    assert first == second
    assert first["days"]["p10"] < first["days"]["p90"]


def test_mfu_in_percent_is_refused_with_the_fix(actor: Actor) -> None:
    with pytest.raises(SpecError, match=r"55 % is 0\.55"):
        make_estimate(actor, step_mfu=55)


def test_an_unknown_accelerator_is_refused_with_what_is_known(actor: Actor) -> None:
    with pytest.raises(SpecError, match="Near it: H100 SXM 80GB"):
        make_estimate(actor, accelerator="h100-sxm-8gb")


def test_without_a_place_or_a_grid_emissions_are_unknown_and_energy_is_not(actor: Actor) -> None:
    result = make_estimate(actor, grid_g_per_kwh=None).result
    assert result["facility_energy_kwh"]["p50"] > 0
    assert result["scope_2_location_kgco2e"] is None


def test_an_estimate_cannot_be_changed_or_deleted(actor: Actor) -> None:
    estimate = make_estimate(actor)
    for attempt in (
        lambda: Estimate.objects.filter(pk=estimate.pk).update(name="better"),
        lambda: Estimate.objects.filter(pk=estimate.pk).delete(),
    ):
        with pytest.raises((InternalError, IntegrityError)), transaction.atomic():
            attempt()


def test_a_draft_holds_the_lines_of_the_chapter(actor: Actor, project: Project) -> None:
    plan = plan_record(make_draft(actor, project))
    assert [line.key for line in plan.lines] == [
        "main_run",
        "experiments",
        "preprocessing",
        "distillation",
        "evaluation",
        "contingency",
    ]
    assert plan.programme_multiple == Decimal("1.74")
    assert plan.all_in_multiple == Decimal("1.74")
    assert plan.budget_at_completion == plan.main_run_cost * Decimal("1.74")
    assert plan.facility_energy_kwh == pytest.approx(plan.main_run_facility_energy_kwh * 1.74)


def test_a_reserve_of_p80_less_p50_on_a_plan_at_p80_is_refused(
    actor: Actor, project: Project
) -> None:
    estimate = make_estimate(actor)
    with pytest.raises(PlanError, match="holds it already"):
        draft_plan(actor, project, estimate, make_choice(level="p80", contingency="p80"))
    assert not PlanVersion.objects.exists()


def test_changing_a_line_moves_contingency_with_it(actor: Actor, project: Project) -> None:
    draft = make_draft(actor, project)
    change_lines(actor, draft, [LineChange(key="experiments", fraction=Decimal("0.5"))])
    plan = plan_record(PlanVersion.objects.get(pk=draft.pk))
    assert plan.programme_multiple == Decimal("2.1")


def test_a_fixed_amount_replaces_a_fraction(actor: Actor, project: Project) -> None:
    draft = make_draft(actor, project)
    change_lines(actor, draft, [LineChange(key="evaluation", amount=Decimal("1000"))])
    line = PlanLine.objects.get(version=draft, key="evaluation")
    assert (line.base, line.fraction, line.amount) == ("amount", None, Decimal("1000"))


def test_a_line_must_end_after_it_starts(actor: Actor, project: Project) -> None:
    draft = make_draft(actor, project)
    with pytest.raises(PlanError, match="must end after it starts"):
        change_lines(actor, draft, [LineChange(key="evaluation", ends_on=date(2020, 1, 1))])


def test_an_approved_version_is_the_baseline_from_then_on(actor: Actor, project: Project) -> None:
    approve_plan(actor, make_draft(actor, project), as_of=AS_OF)
    assert baseline_of(project, as_of=AS_OF) is not None
    assert baseline_of(project, as_of=AS_OF.replace(year=2025)) is None


def test_an_approved_version_is_frozen_by_the_database(actor: Actor, project: Project) -> None:
    draft = make_draft(actor, project)
    approve_plan(actor, draft, as_of=AS_OF)
    for attempt in (
        lambda: PlanVersion.objects.filter(pk=draft.pk).update(main_run_cost=1),
        lambda: PlanLine.objects.filter(version=draft).update(amount=1),
        lambda: PlanLine.objects.filter(version=draft).delete(),
    ):
        with pytest.raises((InternalError, IntegrityError)), transaction.atomic():
            attempt()
    with pytest.raises(PlanError, match="frozen"):
        change_lines(actor, draft, [])


def test_a_second_baseline_needs_a_reason_and_the_first_stays(
    actor: Actor, project: Project
) -> None:
    approve_plan(actor, make_draft(actor, project), as_of=AS_OF)
    second = make_draft(actor, project)
    with pytest.raises(PlanError, match="say why"):
        approve_plan(actor, second, as_of=AS_OF.replace(day=2))
    approve_plan(actor, second, as_of=AS_OF.replace(day=2), reason="price change")
    assert baseline_of(project, as_of=AS_OF).number == 1
    assert baseline_of(project, as_of=AS_OF.replace(day=3)).number == 2


def test_a_plan_needs_a_price_in_the_currency_of_the_project(
    actor: Actor, project: Project
) -> None:
    unpriced = make_estimate(
        actor, price_per_accelerator_hour=None, accelerator="mi250-128gb", step_mfu=0.3
    )
    with pytest.raises(PlanError, match="no price"):
        draft_plan(actor, project, unpriced, make_choice())
    euros = make_estimate(actor, price_per_accelerator_hour={"amount": "2.50", "currency": "EUR"})
    with pytest.raises(PlanError, match="EUR"):
        draft_plan(actor, project, euros, make_choice())


def test_every_change_leaves_a_line_in_the_trail(actor: Actor, project: Project) -> None:
    approve_plan(actor, make_draft(actor, project), as_of=AS_OF)
    actions = list(AuditEntry.objects.values_list("action", flat=True))
    for action in ("estimate.freeze", "plan.draft", "plan.approve"):
        assert action in actions


def test_the_command_drafts_approves_and_shows_a_version(project: Project) -> None:
    def plan(*words: str) -> dict[str, Any]:
        out = StringIO()
        call_command("plan", *words, "--project", project.slug, "--json", stdout=out)
        return json.loads(out.getvalue())

    drafted = plan("create", "--preset", "chapter-10b-moe", "--starts-on", "2026-09-01")
    approved = plan("approve", "--version", "1")

    assert [one["state"] for one in drafted["versions"]] == ["draft"]
    assert [one["state"] for one in approved["versions"]] == ["approved"]
    assert plan("show")["versions"] == approved["versions"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("create", "--estimate", "xyz"), "invalid UUID value"),
        (("approve", "--version", "0"), "No such plan version"),
    ],
)
def test_a_name_that_nothing_has_is_refused_in_words(
    project: Project, actor: Actor, words: tuple[str, ...], said: str
) -> None:
    make_draft(actor, project)
    with pytest.raises(CommandError, match=said):
        call_command("plan", *words, "--project", project.slug)
    assert PlanVersion.objects.get().state == "draft"
