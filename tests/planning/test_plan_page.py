"""The page of a plan: lines of a draft, evidence, reserve, differences, approval by role."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from planning.checks import verify
from planning.line_changes import PlanError, choose_contingency
from planning.models import PlanVersion
from planning.plan_page import band_picture, late_by_days
from planning.records import PlanRecord
from planning.selectors import plan_record
from planning.services import approve_plan, draft_plan
from projects.access import Role, system_actor
from projects.models import Project
from projects.records import Actor
from projects.selectors import the_organisation
from tests import builders
from tests.planning.builders import make_choice, make_estimate

pytestmark = pytest.mark.django_db

PAGE = "/projects/moe/plan/"
WIDE = {"low": 0.3, "mode": 0.45, "high": 0.6}
STORAGE = {
    "tier": "warm",
    "terabytes": "100",
    "price_per_tb_month": {"amount": "23", "currency": "USD"},
}


@pytest.fixture
def project() -> Project:
    people = [
        (builders.person("alice"), Role.OWNER),
        (builders.person("ann"), Role.ANALYST),
        (builders.person("bob"), Role.VIEWER),
    ]
    return builders.project("moe", members=people)


@pytest.fixture
def actor(project: Project) -> Actor:
    return system_actor(the_organisation().pk, "tests")


@pytest.fixture
def draft(actor: Actor, project: Project) -> PlanVersion:
    estimate = make_estimate(actor, step_mfu=WIDE, storage=[STORAGE])
    in_time = datetime.now(UTC).date() + timedelta(days=30)
    return draft_plan(actor, project, estimate, make_choice(starts_on=in_time))


def signed_in(name: str) -> Client:
    client = Client()
    assert client.login(username=name, password=builders.PASSWORD)
    return client


def posted(version: PlanVersion, do: str = "save", **changes: Any) -> dict[str, Any]:
    """The form of the lines as a browser sends it, with changes."""
    data: dict[str, Any] = {"do": do}
    for line in version.lines.all():
        data |= {
            f"{line.key}-base": line.base,
            f"{line.key}-percent": "" if line.fraction is None else str(line.fraction * 100),
            f"{line.key}-amount": str(line.amount) if line.fraction is None else "",
            f"{line.key}-starts_on": line.starts_on.isoformat(),
            f"{line.key}-ends_on": line.ends_on.isoformat(),
            f"{line.key}-place": "programme" if line.in_programme else "around",
        }
    return data | changes


def now(version: PlanVersion) -> PlanRecord:
    return plan_record(PlanVersion.objects.get(pk=version.pk))


def keys(version: PlanVersion) -> list[str]:
    return [line.key for line in now(version).lines]


def test_the_bill_stands_apart_and_outside_the_programme(draft: PlanVersion) -> None:
    page = signed_in("bob").get(PAGE).content.decode()
    assert "outside 1.0×" in page
    plan = now(draft)
    assert [line.key for line in plan.lines if not line.in_programme] == ["storage_warm"]
    assert plan.programme_multiple == Decimal("1.74")
    assert plan.all_in_multiple > plan.programme_multiple


def test_saving_the_page_as_it_is_changes_nothing(draft: PlanVersion) -> None:
    before = now(draft)
    assert signed_in("ann").post(PAGE, posted(draft)).status_code == 302
    assert now(draft) == before


def test_a_share_becomes_a_fixed_amount_and_moves_around_the_programme(draft: PlanVersion) -> None:
    change = {
        "evaluation-base": "amount",
        "evaluation-amount": "1000",
        "evaluation-place": "around",
    }
    signed_in("ann").post(PAGE, posted(draft, **change))
    plan = now(draft)
    line = next(line for line in plan.lines if line.key == "evaluation")
    assert (line.base, line.fraction, line.amount) == ("amount", None, Decimal(1000))
    # 1 + 0.20 + 0.05 + 0.15, and a fifth of those on top: what stands around is not counted.
    assert plan.programme_multiple == Decimal("1.68")
    assert keys(draft)[-2:] == ["evaluation", "storage_warm"]


def test_a_base_without_its_number_is_told_beside_the_field(draft: PlanVersion) -> None:
    answer = signed_in("ann").post(PAGE, posted(draft, **{"evaluation-base": "amount"}))
    assert answer.status_code == 200
    assert "Give the amount" in answer.content.decode()
    assert now(draft).programme_multiple == Decimal("1.74")


def test_an_own_line_is_added_before_the_contingency_with_the_unsaved_changes(
    draft: PlanVersion,
) -> None:
    new = {"new-name": "Red teaming", "new-base": "main_run", "new-percent": "10"}
    data = posted(draft, "add", **{"evaluation-percent": "10"}, **new, **{"new-place": "programme"})
    assert signed_in("ann").post(PAGE, data).status_code == 302
    assert keys(draft).index("own-red-teaming") == keys(draft).index("contingency") - 1
    # The lines make 1.60 now, and a fifth of that comes on top.
    assert now(draft).programme_multiple == Decimal("1.92")


def test_two_own_lines_of_one_name_and_a_name_in_chinese_have_keys_of_their_own(
    draft: PlanVersion,
) -> None:
    client = signed_in("ann")
    for name in ("Legal", "Legal", "安全评估"):
        new = {"do": "add", "new-name": name, "new-base": "amount", "new-amount": "5"}
        client.post(PAGE, new | {"new-place": "around"})
    assert keys(draft)[-3:] == ["own-legal", "own-legal-2", "own-line"]


def test_an_own_line_without_a_name_is_not_added(draft: PlanVersion) -> None:
    answer = signed_in("ann").post(PAGE, posted(draft, "add", **{"new-percent": "5"}))
    assert answer.status_code == 200
    assert "own-line" not in keys(draft)


def test_saving_with_a_new_line_typed_adds_it(draft: PlanVersion) -> None:
    new = {"new-name": "Legal", "new-base": "amount", "new-amount": "5", "new-place": "around"}
    signed_in("ann").post(PAGE, posted(draft, **new))
    assert keys(draft)[-1] == "own-legal"


def test_a_line_is_removed_and_the_main_run_is_not(draft: PlanVersion) -> None:
    client = signed_in("ann")
    client.post(PAGE, posted(draft, "remove:distillation", **{"distillation-percent": "junk"}))
    assert "distillation" not in keys(draft)
    page = client.post(PAGE, {"do": "remove:main_run"}).content.decode()
    assert "what 1.0× means" in page
    assert keys(draft)[0] == "main_run"


def test_moving_the_main_run_moves_w0(draft: PlanVersion) -> None:
    moved = (draft.main_run_starts_on - timedelta(days=5)).isoformat()
    signed_in("ann").post(PAGE, posted(draft, **{"main_run-starts_on": moved}))
    assert now(draft).main_run_starts_on.isoformat() == moved


@pytest.mark.parametrize(
    ("preset", "multiple"),
    [("olmo-2", "1.5"), ("llama-1", "3.4"), ("olmo-3", "5.618"), ("chapter", "1.74")],
)
def test_evidence_makes_the_programme_that_of_others_and_keeps_own_lines(
    draft: PlanVersion, preset: str, multiple: str
) -> None:
    client = signed_in("ann")
    page = client.get(PAGE).content.decode()
    assert "arXiv:2302.13971" in page
    new = {"do": "add", "new-name": "Legal", "new-base": "amount", "new-amount": "5"}
    client.post(PAGE, new | {"new-place": "around"})
    client.post(PAGE, {"do": f"evidence:{preset}"})
    assert now(draft).programme_multiple == Decimal(multiple)
    assert {"own-legal", "storage_warm"} <= set(keys(draft))


def test_an_unknown_preset_is_refused_and_nothing_changes(draft: PlanVersion) -> None:
    before = now(draft)
    page = signed_in("ann").post(PAGE, posted(draft, "evidence:gpt-5")).content.decode()
    assert "no evidence preset" in page
    assert now(draft) == before


def test_contingency_is_flat_or_what_the_spread_asks_for(draft: PlanVersion) -> None:
    client = signed_in("ann")
    drawn = Decimal(draft.estimate.result["programme"]["contingency_p80_less_p50"])
    client.post(PAGE, {"do": "contingency:p80"})
    line = next(line for line in now(draft).lines if line.key == "contingency")
    assert (line.base, line.amount) == ("amount", drawn)
    client.post(PAGE, {"do": "contingency:flat"})
    assert now(draft).programme_multiple == Decimal("1.74")


def test_contingency_comes_back_after_evidence_without_one(
    actor: Actor, draft: PlanVersion
) -> None:
    signed_in("ann").post(PAGE, {"do": "evidence:olmo-2"})
    choose_contingency(actor, draft, "flat")
    assert now(draft).programme_multiple == Decimal("1.8")


def test_a_viewer_reads_the_lines_and_gets_no_form(draft: PlanVersion) -> None:
    bob = signed_in("bob")
    page = bob.get(PAGE).content.decode()
    assert 'id="lines"' not in page
    assert "An owner of the project approves it" in page
    assert bob.post(PAGE, posted(draft)).status_code == 403
    assert signed_in("ann").post("/projects/moe/plan/approve/", {}).status_code == 403


def test_red_findings_disable_the_button_and_say_why(actor: Actor, project: Project) -> None:
    estimate = make_estimate(actor, training_flop=6e24, peak="sparse", sparse_reason="as printed")
    version = draft_plan(actor, project, estimate, make_choice())
    red = [one for one in estimate.result["warnings"] if one["severity"] == "red"]
    alice = signed_in("alice")
    if not red:
        pytest.fail("The example has no red finding any more: choose another.")
    page = alice.get(PAGE).content.decode()
    assert "disabled" in page
    assert "block approval" in page
    alice.post("/projects/moe/plan/approve/", {"reason": "anyway"})
    assert PlanVersion.objects.get(pk=version.pk).state == "draft"


def test_a_budget_dated_after_w0_is_flagged_and_may_still_be_approved(
    actor: Actor, project: Project
) -> None:
    today = datetime.now(UTC)
    started = today.date() - timedelta(days=9)
    version = draft_plan(actor, project, make_estimate(actor), make_choice(starts_on=started))
    assert "Budget dated after W0" in signed_in("alice").get(PAGE).content.decode()
    record = approve_plan(actor, version, as_of=today)
    assert late_by_days(record, first_on=today.date()) == 9
    assert "Budget dated after W0" in signed_in("alice").get(PAGE).content.decode()


def test_a_budget_before_w0_is_not_flagged(draft: PlanVersion) -> None:
    assert "Budget dated after W0" not in signed_in("alice").get(PAGE).content.decode()


def test_a_plan_is_below_inside_or_above_the_band(draft: PlanVersion) -> None:
    client = signed_in("ann")
    found = [band_picture(now(draft)).position]
    for percent in ("40", "60"):
        client.post(PAGE, posted(draft, **{"experiments-percent": percent}))
        found.append(band_picture(now(draft)).position)
    assert found == ["below", "inside", "above"]


def test_approval_shows_what_differs_and_every_version_stays_readable(
    actor: Actor, project: Project, draft: PlanVersion
) -> None:
    approve_plan(actor, draft, as_of=datetime.now(UTC))
    second = make_estimate(actor, step_mfu=0.45, name="Second look")
    draft_plan(actor, project, second, make_choice(level="p80"))
    client = signed_in("alice")
    page = client.get(PAGE).content.decode()
    assert "What differs from version 1" in page
    assert "planned at P50, now at P80" in page
    assert "Step MFU" in page
    client.post("/projects/moe/plan/approve/", {"reason": "a better MFU"})
    version = client.get(f"{PAGE}versions/2/").content.decode()
    assert "What differs from version 1" in version
    assert "a better MFU" in version
    assert client.get(f"{PAGE}versions/1/").status_code == 200
    assert client.get(f"{PAGE}versions/9/").status_code == 404


def test_an_unknown_kind_of_reserve_is_refused(actor: Actor, draft: PlanVersion) -> None:
    with pytest.raises(PlanError, match="flat or p80"):
        choose_contingency(actor, draft, "double")


def test_verify_finds_nothing_wrong_with_an_edited_draft(actor: Actor, draft: PlanVersion) -> None:
    client = signed_in("ann")
    client.post(PAGE, {"do": "evidence:llama-1"})
    client.post(PAGE, {"do": "contingency:p80"})
    assert verify(actor.organisation_id) == ()


def test_verify_finds_a_main_run_that_is_not_the_estimates(
    actor: Actor, draft: PlanVersion
) -> None:
    PlanVersion.objects.filter(pk=draft.pk).update(main_run_cost=draft.main_run_cost * 2)
    assert "plan-main-run" in {finding.code for finding in verify(actor.organisation_id)}


def test_verify_finds_energy_that_does_not_follow_the_money(
    actor: Actor, draft: PlanVersion
) -> None:
    draft.lines.filter(key="storage_warm").update(facility_energy_kwh=5.0)
    assert "plan-line-energy" in {finding.code for finding in verify(actor.organisation_id)}


def test_verify_finds_a_sum_of_lines_that_leaves_out_a_line(
    actor: Actor, draft: PlanVersion
) -> None:
    draft.lines.filter(key="experiments").update(fraction=Decimal("0.3"))
    found = {finding.code for finding in verify(actor.organisation_id)}
    assert "plan-line-amount" in found
