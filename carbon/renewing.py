"""Statements that change entries: each is made and asks a worker to renew what it touches."""

from datetime import UTC, date, datetime, time
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from carbon.assets import NewAsset, add_asset, withdraw_asset
from carbon.boundaries import set_boundary
from carbon.residual_mixes import set_residual_mix
from carbon.services import enqueue_closing
from carbon.site_factors import ALWAYS
from projects.records import Actor
from runs.records import SiteRecord
from runs.selectors import sites


@transaction.atomic
def state_residual_mix(
    actor: Actor, *, market_zone: str, year: int, g_per_kwh: float, source: str
) -> bool:
    """State a residual mix; it holds until a later year has one."""
    changed = set_residual_mix(
        actor,
        market_zone=market_zone,
        year=year,
        g_per_kwh=g_per_kwh,
        source=source,
        known_at=timezone.now(),
    )
    if changed:
        for site in sites(actor.organisation_id):
            enqueue_closing(
                site, repost=True, entries_only=True, start=datetime(year, 1, 1, tzinfo=UTC)
            )
    return changed


@transaction.atomic
def state_boundary(
    actor: Actor, site: SiteRecord, *, ownership: str, market_zone: str, valid_from: date
) -> bool:
    """State who owns a site's hardware from a day on."""
    changed = set_boundary(
        actor,
        site,
        ownership=ownership,
        market_zone=market_zone,
        valid_from=valid_from,
        known_at=timezone.now(),
    )
    if changed:
        enqueue_closing(site, repost=True, entries_only=True, start=_start(valid_from))
    return changed


@transaction.atomic
def state_asset(actor: Actor, site: SiteRecord, new: NewAsset) -> UUID:
    """State hardware of a site."""
    asset_id = add_asset(actor, site, new, known_at=timezone.now())
    enqueue_closing(site, repost=True, entries_only=True, start=_start(new.purchased_on))
    return asset_id


@transaction.atomic
def drop_asset(actor: Actor, site: SiteRecord, asset_id: UUID) -> None:
    """Let hardware of a site count no longer."""
    withdraw_asset(actor, site, asset_id, known_at=timezone.now())
    enqueue_closing(site, repost=True, entries_only=True)


def _start(day: date) -> datetime | None:
    return None if day <= ALWAYS else datetime.combine(day, time(), UTC)
