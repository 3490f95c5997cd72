"""Milestones by week of the plan: set, reached, shown on the plan's page, late where they are."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from django.test import Client

from audit.models import AuditEntry
from costwatch.configuration import ConfigurationError, apply_document, dump_document
from planning.line_changes import PlanError
from planning.milestone_changes import (
    MilestoneWish,
    reach_milestone,
    set_milestones,
)
from planning.milestones import milestones_of
from planning.models import PlanVersion
from planning.plan_page import first_approval_on
from planning.selectors import baseline_of, plan_versions
from planning.services import approve_plan, draft_plan
from planning.work_done import work_done
from projects.access import Role
from projects.models import Project
from projects.records import OrganisationRole
from tests import builders
from tests.carbon.builders import operator
from tests.planning.builders import make_choice, make_estimate
from tests.planning.own_hardware_builders import make_hall

pytestmark = pytest.mark.django_db

PAGE = "/projects/moe/plan/"
DOOR = "/projects/moe/plan/milestones/"
TODAY = datetime.now(UTC).date()


@pytest.fixture
def project() -> Project:
    people = [(builders.person("ann"), Role.ANALYST), (builders.person("bob"), Role.VIEWER)]
    return builders.project("moe", members=people)


@pytest.fixture
def draft(project: Project) -> PlanVersion:
    choice = make_choice(starts_on=TODAY + timedelta(days=30))
    return draft_plan(operator(), project, make_estimate(operator()), choice)


def wish(name: str = "Scaling laws", week: int = 2, **changes: object) -> MilestoneWish:
    return MilestoneWish(name=name, week=week, **changes)


def signed_in(name: str) -> Client:
    client = Client()
    assert client.login(username=name, password=builders.PASSWORD)
    return client


def test_weeks_count_from_the_plans_first_day(project, draft):
    set_milestones(operator(), project, [wish(week=3), wish("Budget", 0)])

    first = min(line.starts_on for line in draft.lines.all())
    found = milestones_of(project)
    assert [(one.name, one.day) for one in found] == [
        ("Budget", first),
        ("Scaling laws", first + timedelta(days=21)),
    ]
    assert not found[0].is_late(first + timedelta(days=6))
    assert found[0].is_late(first + timedelta(days=7))


def test_without_a_plan_there_are_no_weeks_yet(project):
    set_milestones(operator(), project, [wish()])
    assert milestones_of(project) == []
    assert "Milestones" not in signed_in("ann").get(PAGE).content.decode()


def test_a_reached_milestone_earns_its_share_of_the_line_and_leaves_a_trail(project, draft):
    approve_plan(operator(), draft, as_of=datetime.now(UTC))
    some = wish(line_key="experiments", share_fraction=Decimal("0.4"))
    assert set_milestones(operator(), project, [some])
    assert not set_milestones(operator(), project, [some])
    assert reach_milestone(operator(), project, "Scaling laws", TODAY)
    assert not reach_milestone(operator(), project, "Scaling laws", TODAY)

    now = datetime.now(UTC)
    progress = work_done(project, baseline_of(project, as_of=now), as_of=now).at(TODAY)
    assert progress["experiments"].completed_fraction == Decimal("0.4")
    actions = AuditEntry.objects.filter(action__startswith="milestone").values_list("action")
    assert sorted(actions) == [("milestone.reach",), ("milestones.set",)]
    with pytest.raises(PlanError, match="no milestone"):
        reach_milestone(operator(), project, "Nothing", TODAY)


@pytest.mark.parametrize(
    ("wishes", "said"),
    [
        ([wish(), wish()], "Two milestones"),
        ([wish(week=-1)], "week is from 0"),
        ([wish(name=" ")], "a name"),
        ([wish(share_fraction=Decimal("0.5"))], "a share is of a line"),
        ([wish(line_key="experiments", share_fraction=Decimal("1.5"))], "a share is above 0"),
        ([wish(line_key="nothing")], "no line nothing"),
        (
            [
                wish(line_key="experiments", share_fraction=Decimal("0.6")),
                wish("More", line_key="experiments", share_fraction=Decimal("0.6")),
            ],
            "more than the whole",
        ),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(project, draft, wishes, said):
    with pytest.raises(PlanError, match=said):
        set_milestones(operator(), project, wishes)
    assert milestones_of(project) == []


def test_an_analyst_takes_the_chapters_changes_adds_and_removes(project, draft):
    ann = signed_in("ann")
    assert "W0, W18, W26" in ann.get(PAGE).content.decode()
    ann.post(DOOR, {"do": "defaults"})
    assert [one.week for one in milestones_of(project)] == [0, 18, 26]

    rows = {}
    for place, one in enumerate(milestones_of(project)):
        rows |= {f"m{place}-name": one.name, f"m{place}-week": one.week}
    rows |= {"m0-reached_on": TODAY.isoformat(), "m1-week": 20}
    new = {"new-name": "Half way", "new-week": 9, "new-line_key": "main_run", "new-percent": "50"}
    page = ann.post(DOOR, {"do": "save"} | rows | new, follow=True).content.decode()
    assert "The milestones are saved." in page
    found = milestones_of(project)
    assert [one.week for one in found] == [0, 9, 20, 26]
    assert found[0].reached_on == TODAY
    assert found[1].share_fraction == Decimal("0.5")

    ann.post(DOOR, {"do": f"remove:{found[0].name}"} | _posted(project))
    assert [one.week for one in milestones_of(project)] == [9, 20, 26]


def _posted(project: Project) -> dict[str, object]:
    data: dict[str, object] = {}
    for place, one in enumerate(milestones_of(project)):
        share = one.share_fraction
        data |= {
            f"m{place}-name": one.name,
            f"m{place}-week": one.week,
            f"m{place}-line_key": one.line_key,
            f"m{place}-percent": "" if share is None else f"{share * 100:.0f}",
            f"m{place}-reached_on": one.reached_on.isoformat() if one.reached_on else "",
        }
    return data


def test_a_mistake_is_told_by_milestone_and_field_and_a_viewer_only_reads(project, draft):
    ann = signed_in("ann")
    ann.post(DOOR, {"do": "defaults"})
    tomorrow = (TODAY + timedelta(days=1)).isoformat()
    page = ann.post(DOOR, _posted(project) | {"m0-reached_on": tomorrow}, follow=True)
    assert "Budget approved, Reached on: This day is still to come." in page.content.decode()
    assert milestones_of(project)[0].reached_on is None

    bob = signed_in("bob")
    page = bob.get(PAGE).content.decode()
    assert "Budget approved" in page
    assert "m0-name" not in page
    assert bob.post(DOOR, {"do": "defaults"}).status_code == 403


def test_a_budget_approved_after_w0_is_flagged(project):
    choice = make_choice(starts_on=TODAY - timedelta(days=1))
    late = draft_plan(operator(), project, make_estimate(operator()), choice)
    approve_plan(operator(), late, as_of=datetime.now(UTC))
    assert first_approval_on(plan_versions(project)) == TODAY

    assert "budget dated after W0" in signed_in("bob").get(PAGE).content.decode()


# --- the configuration document


CARD = {
    "site": "hall-1",
    "valid_from": date(2025, 10, 1),
    "currency": "USD",
    "capital_per_accelerator": "30000",
    "life_years": 5,
    "residual_fraction": 0.1,
    "electricity_per_kwh": "0.08",
    "source": "invoice 7",
}


def test_cards_and_milestones_go_round_through_the_document(project):
    make_hall(with_card=False)
    one = {"project": "moe", "name": "Half way", "week": 9, "line_key": "main_run"}
    one |= {"share_fraction": 0.5, "reached_on": date(2025, 12, 1)}
    wanted = {"rate_cards": [CARD], "milestones": [one]}

    changes = apply_document(operator(), wanted, dry_run=False)

    assert changes == ["+ milestones[moe/Half way]", "+ rate_cards[hall-1/2025-10-01]"]
    dumped = dump_document(project.organisation_id)
    assert dumped["rate_cards"][0]["residual_fraction"] == "0.1"
    assert dumped["milestones"][0]["share_fraction"] == "0.5"
    assert apply_document(operator(), dumped, dry_run=False) == []


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"rate_cards": [CARD | {"site": "nowhere"}]}, "No site 'nowhere'"),
        ({"rate_cards": [CARD | {"life_years": 0}]}, r"rate_cards\[hall-1\].life_years"),
        ({"rate_cards": [CARD | {"watts": 0}]}, "watts"),
        ({"milestones": [{"project": "no", "name": "A", "week": 1}]}, "No project 'no'"),
    ],
)
def test_the_document_is_refused_by_the_place_of_the_mistake(project, document, said):
    make_hall(with_card=False)
    with pytest.raises(ConfigurationError, match=said):
        apply_document(operator(), document, dry_run=False)


# --- the page of the rate card


def test_an_administrator_states_a_card_and_its_charges_are_asked_for(project):
    builders.person("root", role=OrganisationRole.ADMIN)
    make_hall(with_card=False)
    root = signed_in("root")
    assert "/sites/hall-1/rate-card/" in root.get("/sites/hall-1/").content.decode()
    assert "No card" in root.get("/sites/hall-1/rate-card/").content.decode()

    typed = {
        "month": "2026-01",
        "currency": "usd",
        "capital_per_accelerator": "43800",
        "life_years": "5",
        "electricity_per_kwh": "0.1",
        "source": "invoice 7",
    }
    door = "/sites/hall-1/rate-card/"
    assert "Such as" in root.post(door, typed | {"life_years": "0"}).content.decode()
    page = root.post(door, typed, follow=True).content.decode()

    assert "Charges follow in a moment" in page
    assert "1.0000" in page
    assert signed_in("ann").get(door).status_code == 403
