"""Charges own hardware: hands billing the metered days of sites that have a rate card."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final
from uuid import UUID

from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.translation import gettext as _

from billing.cost_questions import CostQuestion, Filter
from billing.own_records import PROVIDER, MeteredDay, OwnOwner
from billing.records import ChargesRefusedError
from billing.selectors import cost_table
from billing.services import Receipt
from billing.services.allocation import RulesChangedError
from billing.services.own_hardware import charge_own_hardware, give_own_hardware
from carbon.device_days import device_energy_by_day, first_energy_by_device
from formulae.periods import Period, month_from_label, month_label, split_by_month
from jobs import services as jobs
from jobs.records import JobContext, PermanentJobError
from planning.metered_hours import (
    Labels,
    Owner,
    OwnerNames,
    devices_that_stood,
    metered_days,
)
from planning.rate_card_records import RateCardRecord
from planning.rate_cards import card_on, cards_of, cards_of_sites
from projects.access import projects_for, system_actor
from projects.models import Organisation, Project
from projects.records import Actor
from runs.records import AssignmentRecord, SiteRecord
from runs.selectors import assignments_between, assignments_of_site, devices_of, runs_of, site_by_id

JOB: Final = "planning.charge_own_hardware"
_DAY: Final = timedelta(days=1)
RESTATED_MONTHS: Final = 2  # this month and the one before: readings and assignments come late


class ChargingError(ValueError):
    """A month that cannot be charged; the message is for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charged:
    """A month of a site that was handed to billing; no receipt where nothing stood there."""

    site: str
    month: str
    records: int
    receipt: Receipt | None = None


def charge_month(actor: Actor, site: SiteRecord, month: str, *, now: datetime) -> Charged:
    """Charge the days of a month that are over; the month is restated whole.

    The card is the one in force on the month's first day. The same records by the same card are
    nothing new.

    Raises:
        ChargingError: the site has no card for the month, or the month is not begun.
        ChargesRefusedError: billing refused the records.
        RulesChangedError: somebody changed the allocation rules meanwhile; ask again.
    """
    period = month_from_label(month)
    card = card_on(cards_of(site), period.start.date())
    if card is None:
        words = _("{site} has no rate card for {month}: state one on the site's page.")
        raise ChargingError(words.format(site=site.slug, month=month))
    until = min(period.end, datetime.combine(now.astimezone(UTC).date(), time(), UTC))
    if until <= period.start:
        words = _("No day of {month} is over yet.")
        raise ChargingError(words.format(month=month))
    days, owners = _metered(site, Period(start=period.start, end=until))
    if not days:
        return Charged(site=site.slug, month=month, records=0)
    visible = set(projects_for(actor).values_list("slug", flat=True))
    give_own_hardware(actor, [one for one in owners if one.project in visible])
    receipt = charge_own_hardware(
        actor, source_name=source_of(site), month=month, days=days, card=card.card
    )
    return Charged(site=site.slug, month=month, records=len(days), receipt=receipt)


def source_of(site: SiteRecord) -> str:
    """The source of bills that a site's own hardware is."""
    return f"{PROVIDER}: {site.slug}"


def _metered(site: SiteRecord, period: Period) -> tuple[list[MeteredDay], list[OwnOwner]]:
    """The records of [start, end), whole days, and those for whom devices worked."""
    first, last = period.start.date(), period.end.date()
    owned = assignments_between(site.organisation_id, period.start, period.end, site.site_id)
    stood = devices_that_stood(
        devices_of(site.site_id),
        assignments_of_site(site.site_id),
        first_energy_by_device(site.site_id),
    )
    owners = _owners(site.organisation_id, owned)
    names = {owner: OwnerNames(project=one.project, run=one.run) for owner, one in owners.items()}
    days = [first + timedelta(days=offset) for offset in range((last - first).days)]
    energy = device_energy_by_day(site, start_on=first, end_on=last)
    labels = Labels(site=site.slug, owners=names)
    return metered_days(stood, owned, energy, labels=labels, days=days), [*owners.values()]


def _owners(organisation_id: UUID, owned: Iterable[AssignmentRecord]) -> dict[Owner, OwnOwner]:
    """The projects and runs behind assignments, by their ids."""
    wanted = {(one.project_id, one.run_id) for one in owned}
    ids = {project_id for project_id, _run in wanted}
    projects = dict(
        Project.objects.filter(organisation_id=organisation_id, pk__in=ids).values_list(
            "pk", "slug"
        )
    )
    runs = {run.run_id: run for project_id in projects for run in runs_of(project_id)}
    found: dict[Owner, OwnOwner] = {}
    for project_id, run_id in wanted:
        run = runs.get(run_id) if run_id else None
        found[project_id, run_id] = OwnOwner(
            project=projects[project_id],
            run=run.slug if run else "",
            plan_line_key=run.plan_line_key if run else "",
        )
    return found


def charged_months(site: SiteRecord) -> set[str]:
    """The months of a site that have charges of own hardware."""
    question = CostQuestion(
        group_by=("month",),
        filters=(
            Filter(column="provider_name", values=(PROVIDER,)),
            Filter(column="region_id", values=(site.slug,)),
        ),
    )
    rows = cost_table(site.organisation_id, question).rows
    return {row.group[0] for row in rows if row.group[0]}


def months_to_charge(
    site: SiteRecord, cards: Iterable[RateCardRecord], *, now: datetime, since: date | None = None
) -> list[str]:
    """The begun months under a card that a charging restates, oldest first.

    Those from `since` on, the last two, and whichever was never charged.
    """
    starts = [card.valid_from for card in cards]
    today = datetime.combine(now.astimezone(UTC).date(), time(), UTC)
    first = datetime.combine(min(starts, default=today.date()), time(), UTC)
    if not starts or first >= today:
        return []
    months = split_by_month(Period(start=first, end=today))
    known = charged_months(site)
    return [
        month_label(month)
        for place, month in enumerate(months)
        if place >= len(months) - RESTATED_MONTHS
        or (since is not None and month.end.date() > since)
        or month_label(month) not in known
    ]


def charge_own_hardware_job(context: JobContext) -> dict[str, Any]:
    """Charge the months of one site that may have changed; the bytes of a known month add nothing.

    Raises:
        PermanentJobError: billing refused a month.
    """
    site = site_by_id(context.organisation_id, UUID(str(context.payload["site_id"])))
    if site is None:
        raise PermanentJobError(_("The site is gone."))
    text = context.payload.get("since")
    now = timezone.now()
    months = months_to_charge(
        site, cards_of(site), now=now, since=date.fromisoformat(text) if text else None
    )
    actor = system_actor(context.organisation_id, "own hardware")
    charged = []
    for place, month in enumerate(months):
        context.report(place, len(months), month)
        try:
            charged.append(charge_month(actor, site, month, now=now))
        except RulesChangedError:
            raise  # somebody was faster: the next attempt reads the rules anew
        except (ChargesRefusedError, ValidationError) as error:
            raise PermanentJobError(f"{site.slug}, {month}: {error}") from error
    return {"months": {one.month: one.records for one in charged}}


def ask_to_charge(
    organisation_id: UUID, site_id: UUID, *, since: date | None = None, title: str = ""
) -> UUID:
    """Ask for the charges of a site's own hardware, of every month from `since` on."""
    day = since.isoformat() if since else ""
    job = jobs.enqueue(
        organisation_id=organisation_id,
        kind=JOB,
        scope="organisation",
        payload={"site_id": str(site_id), "since": day},
        dedupe_key=f"own-hardware:{site_id}:{day}",
        title=title or _("Charge own hardware"),
    )
    return job.pk


def ask_for_all() -> int:
    """Ask for the charges of every site with a rate card; say of how many."""
    found = [
        ask_to_charge(organisation_id, site_id)
        for organisation_id in Organisation.objects.values_list("pk", flat=True)
        for site_id in cards_of_sites(organisation_id)
    ]
    return len(found)
