"""Writes of stored credentials: seal, replace, forget, rotate. They are opened to pull only."""

from collections.abc import Mapping

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from billing.models import Source, SourceSecret
from projects.access import require_organisation_role, system_actor
from projects.records import Actor
from projects.sealing import first_key_id, open_sealed, seal
from projects.trail import note

LONGEST_SECRET = 20_000


def set_secret(actor: Actor, source: Source, fields: Mapping[str, str]) -> SourceSecret:
    """Store a source's credential, sealed; one that was there is replaced.

    The trail names the fields, never what they hold.

    Raises:
        PermissionDenied: the actor is no administrator.
        ValidationError: there is nothing to store, or it is too long.
    """
    require_organisation_role(actor, write=True)
    if source.organisation_id != actor.organisation_id:
        raise ValidationError(_("This source belongs to another organisation."))
    given = {name: value for name, value in fields.items() if value}
    if not given:
        raise ValidationError(_("Give the credential."))
    if sum(len(value) for value in given.values()) > LONGEST_SECRET:
        raise ValidationError(
            _("A credential has at most {count} letters.").format(count=LONGEST_SECRET)
        )
    with transaction.atomic():
        secret, is_new = SourceSecret.objects.update_or_create(
            source=source,
            defaults={
                "organisation_id": source.organisation_id,
                "sealed": seal(given, owner=str(source.pk)),
                "key_id": first_key_id(),
                "set_at": timezone.now(),
                "set_by": actor.label[:200],
            },
        )
        note(
            actor,
            "source.secret.set" if is_new else "source.secret.replace",
            subject=("source", source.pk),
            after={"fields": sorted(given), "key_id": secret.key_id},
        )
    return secret


def open_secret(source: Source) -> Mapping[str, str] | None:
    """The stored credential of a source, for a pull or a test of it; None without one.

    Raises:
        SealingError: no key opens it.
    """
    secret = SourceSecret.objects.filter(source=source).first()
    return open_sealed(secret.sealed, owner=str(source.pk)) if secret is not None else None


def forget_secret(actor: Actor, source: Source) -> bool:
    """Forget a source's stored credential; return whether there was one.

    Raises:
        PermissionDenied: the actor is no administrator.
    """
    require_organisation_role(actor, write=True)
    with transaction.atomic():
        known = SourceSecret.objects.filter(source=source, organisation_id=actor.organisation_id)
        count, _by_table = known.delete()
        if count:
            note(actor, "source.secret.forget", subject=("source", source.pk))
    return bool(count)


def rotate_secrets() -> int:
    """Seal every credential of the host by the first key; return how many were sealed anew.

    Raises:
        SealingError: one cannot be opened; then none is changed.
    """
    newest = first_key_id()
    with transaction.atomic():
        old = SourceSecret.objects.select_for_update().exclude(key_id=newest).order_by("pk")
        count = 0
        for secret in old:
            owner = str(secret.source_id)
            before = secret.key_id
            secret.sealed = seal(open_sealed(secret.sealed, owner=owner), owner=owner)
            secret.key_id = newest
            secret.save(update_fields=["sealed", "key_id"])
            note(
                system_actor(secret.organisation_id, "manage.py rotate_secrets"),
                "source.secret.rotate",
                subject=("source", secret.source_id),
                before={"key_id": before},
                after={"key_id": newest},
            )
            count += 1
    return count
