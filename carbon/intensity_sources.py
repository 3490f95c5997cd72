"""Writes of sources of grid intensity: connect, change, pause, zones of sites, credentials."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from carbon.adapters import electricity_maps, uk_carbon_intensity, watttime
from carbon.adapters.intensity_points import IntensityError, Provider
from carbon.models import IntensitySource, PromqlPull, SiteZone
from carbon.services import enqueue_closing
from projects.access import require_organisation_role, system_actor
from projects.network import AddressRefusedError, guard_url, is_listed
from projects.records import Actor
from projects.sealing import SealingError, open_sealed, seal, sealed_by_first
from projects.trail import note
from runs.records import SiteRecord
from runs.selectors import sites

ELECTRICITY_MAPS: Final = IntensitySource.Provider.ELECTRICITY_MAPS
WATTTIME: Final = IntensitySource.Provider.WATTTIME
UK: Final = IntensitySource.Provider.UK
CSV: Final = IntensitySource.Provider.CSV
BOTH: Final = "both"  # direct for scope 2, and lifecycle for what lies upstream
BASES: Final[Mapping[str, tuple[str, ...]]] = {
    ELECTRICITY_MAPS: ("direct", "lifecycle", BOTH),
    WATTTIME: ("direct",),
    UK: ("direct",),
    CSV: ("direct", "lifecycle"),
}
CREDENTIAL: Final[Mapping[str, tuple[str, ...]]] = {
    ELECTRICITY_MAPS: ("token",),
    WATTTIME: ("username", "password"),
}
LONGEST_SECRET: Final = 2_000


class SourceError(ValueError):
    """What was asked for cannot be; `field` names the field of the form."""

    def __init__(self, message: str, *, field: str = "") -> None:
        self.field = field
        super().__init__(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceWish:
    """A source as people want it; an empty credential keeps the stored one."""

    provider: str
    name: str
    basis: str = "direct"
    position: int = 1
    base_url: str = ""
    credential: Mapping[str, str] = field(default_factory=dict)
    zones: Mapping[UUID, str] = field(default_factory=dict)  # by site; empty: none


def save_source(
    actor: Actor, wish: SourceWish, *, now: datetime, source: IntensitySource | None = None
) -> IntensitySource:
    """Connect a source, or change one; the books of sites whose chain changed follow.

    Raises:
        SourceError: the wish cannot be; nothing is stored.
        PermissionDenied: the actor is no administrator.
    """
    require_organisation_role(actor, write=True)
    _check(actor, wish, source)
    with transaction.atomic():
        row = source or IntensitySource(organisation_id=actor.organisation_id)
        before = _document(row) if source else None
        moved = bool(source) and row.position != wish.position
        needs_secret = _other_door(row, wish) and wish.provider in CREDENTIAL
        if source and needs_secret and not _given(wish):
            raise SourceError(
                _("Another address: give the credential again."),
                field=CREDENTIAL[wish.provider][0],
            )
        row.provider, row.name, row.basis = wish.provider, wish.name.strip(), wish.basis
        row.position, row.base_url = wish.position, wish.base_url
        if _given(wish):
            row.sealed = seal(_given(wish), owner=str(row.pk))
        row.state, row.not_before = IntensitySource.State.NEW, None
        row.save()
        _set_zones(row, wish.zones, repost_all=moved)
        note(
            actor,
            "intensity_source.change" if source else "intensity_source.connect",
            subject=("intensity_source", row.pk),
            before=before,
            after={**_document(row), "credential": sorted(_given(wish))},
        )
    return row


def _given(wish: SourceWish) -> dict[str, str]:
    return {name: value for name, value in wish.credential.items() if value}


def _other_door(row: IntensitySource, wish: SourceWish) -> bool:
    """Whether the stored credential would go to another address than before."""
    return row.base_url != wish.base_url or row.provider != wish.provider


def _check(actor: Actor, wish: SourceWish, source: IntensitySource | None) -> None:
    if wish.provider not in BASES:
        raise SourceError(_("Choose a provider."), field="provider")
    if wish.basis not in BASES[wish.provider]:
        raise SourceError(
            _("This provider tells {bases} only.").format(bases=", ".join(BASES[wish.provider])),
            field="basis",
        )
    same = IntensitySource.objects.filter(
        organisation_id=actor.organisation_id, name=wish.name.strip()
    )
    others = same.exclude(pk=source.pk) if source else same
    if not wish.name.strip() or others.exists():
        raise SourceError(_("Give a name that no other source has."), field="name")
    needed = CREDENTIAL.get(wish.provider, ())
    given = _given(wish)
    missing = [name for name in needed if name not in given]
    if missing and (given or source is None or not source.sealed):
        raise SourceError(_("Give the whole credential."), field=missing[0])
    if sum(len(value) for value in given.values()) > LONGEST_SECRET:
        raise SourceError(_("The credential is too long."), field=needed[0] if needed else "")
    if wish.base_url:
        check_base_url(wish.base_url)


def check_base_url(url: str) -> None:
    """Let an address other than the provider's own pass only where the operator lists its host.

    Raises:
        SourceError: it may not be used.
    """
    listed = frozenset(settings.PRIVATE_HOSTS)
    try:
        guard_url(url, listed)
    except AddressRefusedError as error:
        raise SourceError(str(error), field="base_url") from error
    if not is_listed(urlsplit(url).hostname or "", listed):
        raise SourceError(
            _(
                "Another address than the provider's own is used only where the operator of this "
                "installation lists its host in COSTWATCH_PRIVATE_HOSTS."
            ),
            field="base_url",
        )


def _set_zones(source: IntensitySource, zones: Mapping[UUID, str], *, repost_all: bool) -> None:
    """Link sites to zones; a changed link is backfilled anew and its site's books follow."""
    known = {row.site_id: row for row in SiteZone.objects.filter(source=source)}
    for site in sites(source.organisation_id):
        zone, old = zones.get(site.site_id, "").strip(), known.get(site.site_id)
        if (old.zone if old else "") == zone:
            if old and repost_all:
                enqueue_closing(site, repost=True)
            continue
        if old:
            old.delete()
        if zone:
            SiteZone.objects.create(
                organisation_id=source.organisation_id,
                site_id=site.site_id,
                source=source,
                zone=zone,
            )
        enqueue_closing(site, repost=True)


def zones_of_source(source: IntensitySource) -> dict[UUID, str]:
    """The zone of each site in this source."""
    rows = SiteZone.objects.filter(source=source)
    return {row.site_id: row.zone for row in rows}


def set_enabled(actor: Actor, source: IntensitySource, *, enabled: bool) -> None:
    """Ask a source no longer, or again; the hours that it told stay in the books."""
    require_organisation_role(actor, write=True)
    with transaction.atomic():
        IntensitySource.objects.filter(pk=source.pk).update(enabled=enabled, not_before=None)
        action = "intensity_source.resume" if enabled else "intensity_source.pause"
        note(actor, action, subject=("intensity_source", source.pk))


def _document(row: IntensitySource) -> dict[str, Any]:
    """A source as the audit trail keeps it: no credential."""
    return {
        "provider": row.provider,
        "name": row.name,
        "basis": row.basis,
        "position": row.position,
        "base_url": row.base_url,
        "zones": {str(site): zone for site, zone in zones_of_source(row).items()},
    }


def source_named(organisation_id: UUID, name: str) -> IntensitySource:
    """The source of this name.

    Raises:
        SourceError: there is none; the message names those there are.
    """
    rows = IntensitySource.objects.filter(organisation_id=organisation_id)
    found = rows.filter(name=name).first()
    if found is None:
        names = ", ".join(rows.values_list("name", flat=True)) or _("none is connected")
        raise SourceError(
            _("No source named {name}: {names}.").format(name=repr(name), names=names)
        )
    return found


def provider_of(source: IntensitySource) -> Provider:
    """The source's service, opened with its credential.

    Raises:
        IntensityError: the credential cannot be opened, or files fill this source.
    """
    try:
        secret = open_sealed(source.sealed, owner=str(source.pk)) if source.sealed else {}
    except SealingError as error:
        raise IntensityError("unauthorised", str(error)) from error
    if source.base_url:
        try:
            check_base_url(source.base_url)
        except SourceError as error:
            raise IntensityError("address", str(error)) from error
    if source.provider == ELECTRICITY_MAPS:
        return electricity_maps.ElectricityMaps(
            token=secret.get("token", ""),
            bases=("direct", "lifecycle") if source.basis == BOTH else (source.basis,),
            base_url=source.base_url or electricity_maps.BASE_URL,
        )
    if source.provider == WATTTIME:
        return watttime.WattTime(
            username=secret.get("username", ""),
            password=secret.get("password", ""),
            base_url=source.base_url or watttime.BASE_URL,
        )
    if source.provider == UK:
        return uk_carbon_intensity.UkCarbonIntensity(
            base_url=source.base_url or uk_carbon_intensity.BASE_URL
        )
    raise IntensityError("no_service", _("Files fill this source; there is nothing to ask."))


def rotate_secrets() -> int:
    """Seal carbon's credentials by the first key; say how many were sealed anew.

    Raises:
        SealingError: one cannot be opened; then none is changed.
    """
    count = 0
    with transaction.atomic():
        for model, kind in ((IntensitySource, "intensity_source"), (PromqlPull, "promql_pull")):
            for row in model.objects.select_for_update().exclude(sealed="").order_by("pk"):
                if sealed_by_first(row.sealed):
                    continue
                owner = str(row.pk)
                sealed = seal(open_sealed(row.sealed, owner=owner), owner=owner)
                model.objects.filter(pk=row.pk).update(sealed=sealed)
                actor = system_actor(row.organisation_id, "manage.py rotate_secrets")
                note(actor, f"{kind}.secret.rotate", subject=(kind, row.pk))
                count += 1
    return count


def sites_with_zones(source: IntensitySource) -> list[tuple[SiteRecord, str]]:
    """The organisation's sites and their zone in this source, empty where there is none."""
    zones = zones_of_source(source)
    return [(site, zones.get(site.site_id, "")) for site in sites(source.organisation_id)]
