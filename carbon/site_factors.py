"""A site's own dated factors (PUE, host factor, grid, longest gap): reads and writes."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from audit import services as audit
from carbon.factors import shipped_grid_factors
from carbon.models import GridIntensity, SiteFactor
from carbon.records import DEFAULT_MAX_GAP_S, DatedFactor, GridFactor
from formulae.units import S_PER_HOUR
from projects.records import Actor
from runs.records import SiteRecord

ALWAYS: Final = date(1970, 1, 1)
RANGES: Final = {
    "host_factor": (1.0, 10.0),
    "pue": (1.0, 10.0),
    "grid_g_per_kwh": (0.0, 5_000.0),
    "wue_l_per_kwh": (0.0, 100.0),
    "source_l_per_kwh": (0.0, 1_000.0),
    "max_gap_s": (1.0, float(S_PER_HOUR)),
}


class FactorError(ValueError):
    """A factor that cannot be; the message is for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFactor:
    """What a person sets: a value from a day on."""

    kind: str
    value: float
    valid_from: date = ALWAYS
    tier: str = SiteFactor.Tier.ESTIMATED
    source: str = ""


def dated_factors(site_id: UUID) -> list[DatedFactor]:
    """The factors of a site that hold today's knowledge, by kind and day."""
    return [
        DatedFactor(
            factor_id=f"site-factor/{row.pk}",
            kind=row.kind,
            value=row.value,
            valid_from=row.valid_from,
            tier=row.tier,
            source=row.source,
        )
        for row in SiteFactor.objects.filter(site_id=site_id, superseded_at__isnull=True)
    ]


def max_gap_s(dated: Iterable[DatedFactor]) -> float:
    """The longest gap between samples that the site bridges, s."""
    found = [one for one in dated if one.kind == "max_gap_s"]
    newest = max(found, key=lambda one: one.valid_from, default=None)
    return newest.value if newest else DEFAULT_MAX_GAP_S


@transaction.atomic
def set_factor(actor: Actor, site: SiteRecord, new: NewFactor, *, known_at: datetime) -> bool:
    """Set a factor from a day on; say whether anything changed.

    Raises:
        FactorError: the value is out of range, or the tier is none of the three.
    """
    low, high = RANGES[new.kind]
    if not low <= new.value <= high:
        raise FactorError(
            _("%(kind)s is %(value)s; it must lie between %(low)s and %(high)s.")
            % {"kind": new.kind, "value": new.value, "low": low, "high": high}
        )
    if new.tier not in SiteFactor.Tier.values:
        raise FactorError(_("A factor is measured, published or estimated; say which."))
    old = (
        SiteFactor.objects.select_for_update()
        .filter(site_id=site.site_id, kind=new.kind, valid_from=new.valid_from)
        .filter(superseded_at__isnull=True)
        .first()
    )
    if old and (old.value, old.tier, old.source) == (new.value, new.tier, new.source):
        return False
    if old:
        SiteFactor.objects.filter(pk=old.pk).update(superseded_at=known_at)
    row = SiteFactor.objects.create(
        organisation_id=site.organisation_id,
        site_id=site.site_id,
        kind=new.kind,
        value=new.value,
        valid_from=new.valid_from,
        tier=new.tier,
        source=new.source,
        known_at=known_at,
    )
    _note(actor, site, old, row)
    return True


@transaction.atomic
def withdraw_factor(actor: Actor, site: SiteRecord, factor_id: UUID, *, known_at: datetime) -> None:
    """Let a factor hold no longer; the entries made with it are corrected, not deleted."""
    old = SiteFactor.objects.filter(
        pk=factor_id, site_id=site.site_id, superseded_at__isnull=True
    ).first()
    if old is None:
        raise FactorError(_("No such factor at this site; reload the page."))
    SiteFactor.objects.filter(pk=old.pk).update(superseded_at=known_at)
    _note(actor, site, old, None)


def _note(actor: Actor, site: SiteRecord, old: SiteFactor | None, new: SiteFactor | None) -> None:
    audit.record(
        organisation_id=site.organisation_id,
        actor_label=actor.label,
        user_id=actor.user_id,
        token_id=actor.token_id,
        ip=actor.ip,
        action="site_factor.changed",
        object_type="site",
        object_id=site.slug,
        before=_document(old),
        after=_document(new),
    )


def _document(row: SiteFactor | None) -> dict[str, object] | None:
    if row is None:
        return None
    return {
        "kind": row.kind,
        "value": row.value,
        "valid_from": row.valid_from,
        "tier": row.tier,
        "source": row.source,
    }


def load_shipped_factors() -> int:
    """Add the shipped grid factors that the table lacks; say how many were new."""
    shipped = shipped_grid_factors()
    if GridIntensity.objects.filter(
        factor_id__in=[one.factor_id for one in shipped]
    ).count() == len(shipped):
        return 0
    before = GridIntensity.objects.count()
    GridIntensity.objects.bulk_create(
        (
            GridIntensity(
                factor_id=one.factor_id,
                zone_type=one.zone_type,
                zone=one.zone,
                zone_name=one.zone_name,
                year=one.year,
                value_g_per_kwh=one.value_g_per_kwh,
                gas_scope=one.gas_scope,
                method=one.method,
                source=one.source,
                licence=one.licence,
                version=one.version,
            )
            for one in shipped
        ),
        ignore_conflicts=True,
        batch_size=1_000,
    )
    return GridIntensity.objects.count() - before


def grid_factors(zones: Iterable[str]) -> list[GridFactor]:
    """The grid factors of these zones; the shipped rows are loaded when the table lacks them."""
    if not GridIntensity.objects.filter(zone="WORLD").exists():
        load_shipped_factors()
    return [
        GridFactor(
            factor_id=row.factor_id,
            zone_type=row.zone_type,
            zone=row.zone,
            zone_name=row.zone_name,
            year=row.year,
            value_g_per_kwh=row.value_g_per_kwh,
            gas_scope=row.gas_scope,
            method=row.method,
            source=row.source,
            licence=row.licence,
            version=row.version,
        )
        for row in GridIntensity.objects.filter(zone__in=list(zones))
    ]
