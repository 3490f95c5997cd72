"""Who owns and controls the hardware of a site, by day: the scope and market of its energy."""

from dataclasses import dataclass
from datetime import date, datetime
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from carbon.factors import cloud_name, cloud_regions
from carbon.models import SiteBoundary
from carbon.site_factors import ALWAYS, FactorError
from projects import trail
from projects.records import Actor
from runs.records import SiteRecord

OWN: Final = SiteBoundary.Ownership.OWN.value
COLOCATION: Final = SiteBoundary.Ownership.COLOCATION.value
LEASED: Final = SiteBoundary.Ownership.LEASED.value
CLOUD: Final = SiteBoundary.Ownership.CLOUD.value
SCOPE_2: Final = "scope_2"
SCOPE_2_COLOCATION: Final = "scope_2_colocation"  # scope 2 whose overhead follows the contract
SCOPE_3_LEASED: Final = "scope_3_category_8"
SCOPE_3_PURCHASED: Final = "scope_3_category_1"
SCOPE_OF: Final = {
    OWN: SCOPE_2,
    COLOCATION: SCOPE_2_COLOCATION,
    LEASED: SCOPE_3_LEASED,
    CLOUD: SCOPE_3_PURCHASED,
}
_OWN_ELECTRICITY: Final = (OWN, COLOCATION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """A site's boundary from a day on; `is_default` where nobody has stated one."""

    ownership: str
    market_zone: str
    valid_from: date
    is_default: bool = False

    @property
    def scope_category(self) -> str:
        """The category of the GHG Protocol that the site's electricity falls into."""
        return SCOPE_OF[self.ownership]


def country_of(site: SiteRecord) -> str:
    """ISO 3166-1 alpha-3 of the country that the site stands in, empty where unknown."""
    known = cloud_regions().get((cloud_name(site.provider), site.region.strip().lower()))
    return site.country.upper() or (known.country if known else "")


def _market_zone(site: SiteRecord, ownership: str, stated: str) -> str:
    """The market whose contracts count: as stated; own electricity is bought in its country.

    What a cloud or a lessor buys is theirs to contract for, unless the boundary names a market.
    """
    if stated or ownership not in _OWN_ELECTRICITY:
        return stated
    return country_of(site)


def boundaries_of(site: SiteRecord, *, as_of: datetime | None = None) -> tuple[Boundary, ...]:
    """What has been stated of a site, earliest first, after the default that holds before."""
    rows = SiteBoundary.objects.filter(site_id=site.site_id)
    if as_of is None:
        rows = rows.filter(superseded_at__isnull=True)
    else:
        known = rows.filter(known_at__lte=as_of)
        rows = known.filter(Q(superseded_at__isnull=True) | Q(superseded_at__gt=as_of))
    default = CLOUD if site.provider else OWN
    found = [
        Boundary(
            ownership=default,
            market_zone=_market_zone(site, default, ""),
            valid_from=date.min,
            is_default=True,
        )
    ]
    found += [
        Boundary(
            ownership=row.ownership,
            market_zone=_market_zone(site, row.ownership, row.market_zone),
            valid_from=row.valid_from,
        )
        for row in rows.order_by("valid_from")
    ]
    return tuple(found)


def boundary_on(boundaries: tuple[Boundary, ...], day: date) -> Boundary:
    """The boundary that holds on a day."""
    return [one for one in boundaries if one.valid_from <= day][-1]


def stated_boundaries(site_id: UUID) -> list[SiteBoundary]:
    """What people have stated and not withdrawn, earliest first."""
    rows = SiteBoundary.objects.filter(site_id=site_id, superseded_at__isnull=True)
    return list(rows.order_by("valid_from"))


@transaction.atomic
def set_boundary(  # noqa: PLR0913  # mirrors the columns
    actor: Actor,
    site: SiteRecord,
    *,
    ownership: str,
    market_zone: str = "",
    valid_from: date = ALWAYS,
    known_at: datetime,
) -> bool:
    """State who owns the hardware from a day on; say whether anything changed.

    Raises:
        FactorError: the ownership is none of the four.
    """
    if ownership not in SCOPE_OF:
        raise FactorError(
            _("The hardware is own, colocation, leased or cloud; %(given)s is none of them.")
            % {"given": ownership}
        )
    market_zone = market_zone.strip()
    held = SiteBoundary.objects.select_for_update().filter(
        site_id=site.site_id, valid_from=valid_from, superseded_at__isnull=True
    )
    old = held.first()
    if old and (old.ownership, old.market_zone) == (ownership, market_zone):
        return False
    held.update(superseded_at=known_at)
    new = SiteBoundary.objects.create(
        organisation_id=site.organisation_id,
        site_id=site.site_id,
        ownership=ownership,
        market_zone=market_zone,
        valid_from=valid_from,
        known_at=known_at,
    )
    trail.note(
        actor,
        "site_boundary.changed",
        subject=("site", site.slug),
        before=_document(old),
        after=_document(new),
    )
    return True


def _document(row: SiteBoundary | None) -> dict[str, object] | None:
    if row is None:
        return None
    return {
        "ownership": row.ownership,
        "market_zone": row.market_zone,
        "valid_from": row.valid_from,
    }
