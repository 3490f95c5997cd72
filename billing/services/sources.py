"""Writes of pulled sources: connect, change, schedule, pause. They are pulled elsewhere."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from billing.adapters import AUTO, FORMATS
from billing.connectors import Connection, ConnectorError, connector_for
from billing.models import Source, SourceSecret
from billing.services.pull_requests import allowed
from billing.services.receiving import shown_name
from billing.services.secrets import forget_secret, set_secret
from billing.source_kinds import SCHEDULES, SOURCE_KINDS, SourceKind
from projects.access import require_organisation_role
from projects.records import Actor
from projects.trail import note

log = structlog.get_logger(__name__)
LONGEST_NAME = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceWish:
    """A source as somebody wants it; an empty secret leaves the stored one as it is."""

    name: str
    kind: str
    connection: Mapping[str, Any] = field(default_factory=dict)
    bill_format: str = AUTO
    every_h: int | None = None
    is_paused: bool = False
    secret: Mapping[str, str] = field(default_factory=dict, repr=False)


def connect_source(actor: Actor, wish: SourceWish) -> Source:
    """Make a source that can be pulled.

    Raises:
        PermissionDenied: the actor is no administrator.
        ValidationError: a part of the wish cannot be; keyed by the field.
    """
    require_organisation_role(actor, write=True)
    _check(wish)
    source = Source(organisation_id=actor.organisation_id)
    try:
        with transaction.atomic():
            _fill(source, wish)
            source.save(force_insert=True)
            note(actor, "source.create", subject=("source", source.pk), after=document_of(source))
            if any(wish.secret.values()):
                set_secret(actor, source, wish.secret)
    except IntegrityError as error:
        raise _taken(wish.name) from error
    return source


def change_source(actor: Actor, source: Source, wish: SourceWish) -> tuple[str, ...]:
    """Bring a source to what the wish says; return the names of what changed.

    A stored credential is forgotten when the source would send it somewhere else.

    Raises:
        PermissionDenied: the actor is no administrator.
        ValidationError: a part of the wish cannot be; keyed by the field.
    """
    require_organisation_role(actor, write=True)
    _check(wish)
    try:
        with transaction.atomic():
            known = Source.objects.select_for_update().get(
                pk=source.pk, organisation_id=actor.organisation_id
            )
            _require_same_kind(known, wish)
            before = document_of(known)
            if _leads_elsewhere(known, wish) and forget_secret(actor, known):
                log.info("credential forgotten: the source leads elsewhere", source=str(known.pk))
            _fill(known, wish)
            after = document_of(known)
            changed = tuple(name for name in after if after[name] != before.get(name))
            if changed:
                known.save()
                note(
                    actor, "source.change", subject=("source", known.pk), before=before, after=after
                )
            if any(wish.secret.values()):
                set_secret(actor, known, wish.secret)
                changed = (*changed, "secret")
    except IntegrityError as error:
        raise _taken(wish.name) from error
    source.refresh_from_db()
    return changed


def pause_source(actor: Actor, source: Source, *, pause: bool) -> None:
    """Stop pulling by the schedule, or go on.

    Raises:
        PermissionDenied: the actor is no administrator.
    """
    require_organisation_role(actor, write=True)
    with transaction.atomic():
        changed = Source.objects.filter(
            pk=source.pk, organisation_id=actor.organisation_id, is_paused=not pause
        ).update(is_paused=pause)
        if changed:
            action = "source.pause" if pause else "source.resume"
            note(actor, action, subject=("source", source.pk))
    source.refresh_from_db()


def document_of(source: Source) -> dict[str, Any]:
    """A source as the trail and the configuration document tell it: never its credential."""
    return {
        "name": source.name,
        "kind": source.kind,
        "connection": dict(source.connection),
        "format": source.bill_format,
        "every_h": source.every_h,
        "paused": source.is_paused,
    }


def _fill(source: Source, wish: SourceWish) -> None:
    source.name = shown_name(wish.name)
    source.kind = wish.kind
    source.connection = {name: value for name, value in wish.connection.items() if value != ""}
    source.bill_format = wish.bill_format
    source.every_h = wish.every_h or None
    source.is_paused = wish.is_paused


def _check(wish: SourceWish) -> None:
    if not wish.name.strip() or len(shown_name(wish.name)) > LONGEST_NAME:
        raise ValidationError(
            {"name": _("Give a name of at most {count} letters.").format(count=LONGEST_NAME)}
        )
    if wish.bill_format not in FORMATS:
        known = ", ".join(FORMATS)
        raise ValidationError({"bill_format": _("It must be one of {known}.").format(known=known)})
    if (wish.every_h or 0) not in SCHEDULES:
        hours = ", ".join(str(every_h) for every_h in SCHEDULES if every_h)
        raise ValidationError(
            {"every_h": _("It is pulled every so many hours: {hours}.").format(hours=hours)}
        )
    _check_connection(wish)


def _check_connection(wish: SourceWish) -> None:
    """Refuse what is missing or unknown, then ask the connector; nothing is reached."""
    kind = SOURCE_KINDS.get(wish.kind)
    if kind is None:
        if wish.kind not in (Source.Kind.UPLOAD, Source.Kind.OWN_HARDWARE) or wish.connection:
            raise ValidationError({"kind": _("Nothing can be pulled from this kind of source.")})
        return
    _check_fields(kind, wish)
    try:
        connector_for(Connection(kind=wish.kind, settings=dict(wish.connection), allowed=allowed()))
    except ConnectorError as error:
        raise ValidationError({"connection": str(error)}) from error


def _check_fields(kind: SourceKind, wish: SourceWish) -> None:
    for name in wish.connection:
        if name not in kind.field_names:
            raise ValidationError(
                {"connection": _("There is no setting {name}.").format(name=str(name)[:60])}
            )
    for one in kind.fields:
        if one.required and not wish.connection.get(one.name):
            raise ValidationError({one.name: _("This is needed.")})
    secret_names = {one.name for one in kind.secret_fields}
    if any(name not in secret_names for name in wish.secret):
        raise ValidationError({"secret": _("A source of this kind has no such credential.")})


def _require_same_kind(source: Source, wish: SourceWish) -> None:
    """A source that has only had files handed in may become one that is pulled; no other change."""
    if source.kind not in (wish.kind, Source.Kind.UPLOAD):
        raise ValidationError(
            {"kind": _("A source keeps its kind: connect another source instead.")}
        )


def _leads_elsewhere(source: Source, wish: SourceWish) -> bool:
    kind = SOURCE_KINDS.get(source.kind)
    if kind is None or not SourceSecret.objects.filter(source=source).exists():
        return False
    return any(
        (source.connection.get(one.name) or "") != (wish.connection.get(one.name) or "")
        for one in kind.fields
        if one.leads_elsewhere
    )


def _taken(name: str) -> ValidationError:
    return ValidationError({"name": _("There is a source named {name}.").format(name=name[:60])})
