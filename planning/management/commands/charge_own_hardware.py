"""manage.py charge_own_hardware: charge a site's own hardware now, in this process."""

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from billing.records import ChargesRefusedError
from jobs.records import JobState
from jobs.selectors import job_progress
from jobs.services import run_job
from planning.charging import Charged, charge_month, months_to_charge
from planning.rate_cards import cards_of, cards_of_sites
from projects.access import system_actor
from projects.chosen_organisation import chosen_organisation
from projects.records import Actor
from runs.records import SiteRecord
from runs.selectors import site_by_slug, sites
from ui.console import JsonCommand


class Command(JsonCommand):
    help = "Charge the own hardware of a site, or of every site with a rate card."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--site", metavar="SLUG")
        parser.add_argument("--month", metavar="YYYY-MM")

    def handle(self, *args: Any, **options: Any) -> None:
        organisation = chosen_organisation(options["organisation"])
        actor = system_actor(organisation.pk, "manage.py charge_own_hardware")
        charged = [
            one
            for site in _sites(actor, options["site"])
            for one in _charge(actor, site, options["month"])
        ]
        document = {
            "months": [
                {
                    "site": one.site,
                    "month": one.month,
                    "records": one.records,
                    "is_new": bool(one.receipt and not one.receipt.already_imported),
                }
                for one in charged
            ]
        }
        lines = [f"{one.site} {one.month}: {one.records} records" for one in charged]
        self.emit(document, "\n".join(lines) or "No site has a rate card.")


def _sites(actor: Actor, slug: str | None) -> list[SiteRecord]:
    if slug is None:
        cards = cards_of_sites(actor.organisation_id)
        return [one for one in sites(actor.organisation_id) if one.site_id in cards]
    site = site_by_slug(actor.organisation_id, slug)
    if site is None:
        raise CommandError(f"There is no site {slug}.")
    return [site]


def _charge(actor: Actor, site: SiteRecord, month: str | None) -> list[Charged]:
    now = timezone.now()
    months = [month] if month else months_to_charge(site, cards_of(site), now=now)
    try:
        charged = [charge_month(actor, site, one, now=now) for one in months]
    except ChargesRefusedError as refusal:
        raise CommandError(refusal.sentence) from refusal
    except ValidationError as error:
        raise CommandError("; ".join(error.messages)) from error
    except ValueError as error:
        raise CommandError(str(error)) from error
    for one in charged:
        _publish(one, actor)
    return charged


def _publish(charged: Charged, actor: Actor) -> None:
    if charged.receipt is None:
        return
    run_job(charged.receipt.job_id)
    progress = job_progress(charged.receipt.job_id, actor.organisation_id)
    if progress.state == JobState.FAILED:
        raise CommandError(f"{charged.site} {charged.month}: {progress.error}")
