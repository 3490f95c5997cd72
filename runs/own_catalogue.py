"""Writes of an organisation's own catalogue rows: checked, audited; shipped rows never change."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from projects.records import Actor
from projects.trail import note
from runs.catalogue import shipped_accelerators
from runs.catalogue_rows import RowError, accelerator_row, instance_type_row
from runs.models import CatalogueEntry, Device, InstanceTypeEntry, Run
from runs.selectors import accelerator


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedRow:
    """A row as it stands now; `is_new` where there was none of its name."""

    document: Mapping[str, Any]
    is_new: bool


@transaction.atomic
def save_accelerator(actor: Actor, document: Mapping[str, Any]) -> SavedRow:
    """Add or change an own accelerator; it overrides a shipped one of the same key.

    Raises:
        RowError: the row cannot be true, or says too little; the field and its unit are named.
    """
    row = accelerator_row(document)
    old = (
        CatalogueEntry.objects.select_for_update()
        .filter(organisation_id=actor.organisation_id, key=row["key"])
        .first()
    )
    if old is None or old.document != row:
        CatalogueEntry.objects.update_or_create(
            organisation_id=actor.organisation_id, key=row["key"], defaults={"document": row}
        )
        note(
            actor,
            "catalogue.changed" if old else "catalogue.added",
            subject=("accelerator", row["key"]),
            before=old.document if old else None,
            after=row,
        )
    return SavedRow(document=row, is_new=old is None)


@transaction.atomic
def remove_accelerator(actor: Actor, key: str) -> None:
    """Remove an own accelerator; a shipped one of the same key holds again.

    Raises:
        LookupError: there is no own row of this key.
        RowError: something still names it, and there is no shipped row of the key.
    """
    of = actor.organisation_id
    old = CatalogueEntry.objects.select_for_update().filter(organisation_id=of, key=key).first()
    if old is None:
        raise LookupError(key)
    if key not in shipped_accelerators():
        _refuse_while_used(of, key)
    before = old.document
    old.delete()
    note(actor, "catalogue.removed", subject=("accelerator", key), before=before)


def _refuse_while_used(organisation_id: UUID, key: str) -> None:
    users = {
        _("devices"): Device.objects.filter(organisation_id=organisation_id, accelerator_key=key),
        _("runs"): Run.objects.filter(organisation_id=organisation_id, accelerator_key=key),
        _("instance types"): InstanceTypeEntry.objects.filter(
            organisation_id=organisation_id, document__accelerator=key
        ),
    }
    for word, found in users.items():
        if count := found.count():
            raise RowError(
                "",
                _("%(count)d %(things)s still name this accelerator: change them first.")
                % {"count": count, "things": word},
            )


@transaction.atomic
def save_instance_type(actor: Actor, document: Mapping[str, Any]) -> SavedRow:
    """Add or change an own instance type; it overrides a shipped one of the same name.

    Raises:
        RowError: the row cannot be true, says too little, or names an unknown accelerator.
    """
    row = instance_type_row(document)
    try:
        accelerator(row["accelerator"], actor.organisation_id)
    except LookupError as error:
        raise RowError("accelerator", str(error)) from error
    old = _instance_types(actor).filter(provider=row["provider"], name__iexact=row["name"]).first()
    if old is None or old.document != row:
        entry = old or InstanceTypeEntry(organisation_id=actor.organisation_id)
        before = old.document if old else None
        entry.provider, entry.name, entry.document = row["provider"], row["name"], row
        entry.save()
        note(
            actor,
            "instance_type.changed" if old else "instance_type.added",
            subject=("instance_type", f"{row['provider']} {row['name']}"),
            before=before,
            after=row,
        )
    return SavedRow(document=row, is_new=old is None)


@transaction.atomic
def remove_instance_type(actor: Actor, entry_id: UUID) -> None:
    """Remove an own instance type; a shipped one of the same name holds again.

    Raises:
        LookupError: there is no own instance type of this id.
    """
    old = _instance_types(actor).filter(pk=entry_id).first()
    if old is None:
        raise LookupError(str(entry_id))
    subject = ("instance_type", str(old))
    before = old.document
    old.delete()
    note(actor, "instance_type.removed", subject=subject, before=before)


def _instance_types(actor: Actor) -> Any:
    return InstanceTypeEntry.objects.select_for_update().filter(
        organisation_id=actor.organisation_id
    )
