"""Loads the demo through the doors of real data, stage by stage; its story is story.py's."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from django.utils import timezone

from carbon.selectors import energy_by_day
from carbon.services import enqueue_closing
from costwatch.configuration import apply_document, dump_document
from costwatch.demo import story
from costwatch.demo.charges import build_bills
from costwatch.demo.deliveries import (
    PowerDeliveryError,
    deliver_bills,
    deliver_power,
    deliver_progress,
    delivering_power,
    state_invoices,
)
from costwatch.demo.document import (
    allocation_rules,
    configuration_document,
    kickoff_question,
)
from costwatch.demo.energy import deliver_grid_and_contract, deliver_readings, demo_site
from costwatch.demo.inline_jobs import finish_waiting
from costwatch.demo.people import ensure_people
from costwatch.demo.power import build_power
from costwatch.demo.progress import build_progress
from planning.selectors import plan_versions
from planning.services import DraftChoice, approve_plan, draft_plan, freeze_estimate
from planning.spec import parse_request
from projects.access import project_for, projects_for, system_actor
from projects.models import Organisation, Project
from projects.records import Actor

FOLLOW_UPS: Final = (
    "billing.rebuild_daily_costs",
    "carbon.book_readings",
    "carbon.close_hours",
)
APPROVED_AT: Final = story.EXPERIMENTS_START - timedelta(days=7)


class DemoError(RuntimeError):
    """The demo could not be loaded; the message says at which stage and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is asked of the loader."""

    seed: int = story.DEFAULT_SEED
    with_accounts: bool = False
    one_process: bool = True
    say: Callable[[str], None] = field(default=lambda line: None)


@dataclass(slots=True, kw_only=True)
class Clock:
    """How long each stage took, in seconds."""

    stages: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time one stage."""
        started = time.perf_counter()
        yield
        self.stages[name] = time.perf_counter() - started


def demo_actor(organisation: Organisation) -> Actor:
    """Whom the audit trail names."""
    return system_actor(organisation.pk, "manage.py demo")


def demo_project(organisation: Organisation) -> Project | None:
    """The demo project, if it is there."""
    return projects_for(demo_actor(organisation)).filter(slug=story.PROJECT_SLUG).first()


def load_demo(organisation: Organisation, wish: Wish) -> dict[str, float]:
    """Load everything; what is there already stays. Returns the seconds of each stage."""
    actor, clock = demo_actor(organisation), Clock()
    _refuse_a_real_project(organisation)
    if wish.with_accounts:
        with clock.stage("accounts"):
            ensure_people(actor, organisation)
    with clock.stage("configuration"):
        document = _document(organisation, with_members=wish.with_accounts)
        apply_document(actor, document, dry_run=False)
        deliver_grid_and_contract(actor, now=_after_the_story())
        finish_waiting(organisation.pk, FOLLOW_UPS)
    with _power(organisation, wish, clock):
        with clock.stage("plan"):
            _ensure_plan(actor)
        with clock.stage("bills"):
            files, ledger = build_bills(wish.seed)
            deliver_bills(actor, files)
            state_invoices(actor, ledger)
        with clock.stage("progress"):
            deliver_progress(actor, build_progress(wish.seed))
    with clock.stage("readings"):
        deliver_readings(actor, now=_after_the_story(), seed=wish.seed)
        finish_waiting(organisation.pk, FOLLOW_UPS)
        enqueue_closing(demo_site(actor))
        finish_waiting(organisation.pk, FOLLOW_UPS)
    return clock.stages


def _after_the_story() -> datetime:
    """Now; a clock behind the story must not make its readings look impossible."""
    return max(timezone.now(), story.AS_OF)


def _refuse_a_real_project(organisation: Organisation) -> None:
    """Never mix invented figures into somebody's own project of the same address."""
    project = demo_project(organisation)
    if project is not None and not project.is_synthetic:
        raise DemoError(
            f"The project {story.PROJECT_SLUG!r} is not marked as synthetic: it is not the demo. "
            "Archive or rename it first."
        )


def _document(organisation: Organisation, *, with_members: bool) -> dict[str, Any]:
    """The demo's configuration: its rules behind those that are there, members if accounts are."""
    document = configuration_document()
    if not with_members:
        for project in document["projects"]:
            project["members"] = []
    rules: list[Any] = dump_document(organisation.pk)["allocation_rules"]
    document["allocation_rules"] = rules + [
        rule for rule in allocation_rules() if rule not in rules
    ]
    return document


def _has_power(organisation: Organisation) -> bool:
    """Whether the last day of the story has energy: readings are never restated, only reported."""
    last_day = (story.AS_OF - timedelta(days=1)).date()
    days = energy_by_day(
        organisation.pk, None, start_on=last_day, end_on=last_day + timedelta(days=1)
    )
    return bool(days)


@contextmanager
def _power(organisation: Organisation, wish: Wish, clock: Clock) -> Iterator[None]:
    """Load the power of the story beside or after what the caller does, unless it is there."""
    if _has_power(organisation):
        yield
        return
    files, ledger = build_power(wish.seed)
    now = timezone.now()
    try:
        if wish.one_process or now < story.AS_OF:
            yield
            with clock.stage("power"):
                deliver_power(demo_actor(organisation), files, now=_after_the_story())
        else:
            with (
                clock.stage("power, beside plan and bills"),
                delivering_power(organisation.slug, files),
            ):
                yield
    except PowerDeliveryError as error:
        raise DemoError(f"The power could not be loaded: {error}") from error
    rows = sum(file.rows for file in files)
    wish.say(f"{rows:,} power readings, {ledger.accelerator_energy_kwh:,.0f} kWh of GPUs")


def _ensure_plan(actor: Actor) -> None:
    """Estimate, plan and baseline as they were a week before the first experiment."""
    project = project_for(actor, story.PROJECT_SLUG)
    if any(version.is_approved for version in plan_versions(project)):
        return
    as_of: datetime = APPROVED_AT
    question = parse_request(kickoff_question())
    estimate = freeze_estimate(actor, question, as_of=as_of, project=project)
    draft = draft_plan(actor, project, estimate, DraftChoice(starts_on=story.MAIN_RUN_START.date()))
    approve_plan(actor, draft, as_of=as_of, reason="Kickoff (synthetic)")
