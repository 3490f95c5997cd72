"""Approves factors for the books. Who entered a factor may not approve it. No reads for pages."""

from datetime import datetime

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from carbon.factor_registry import RegistryRow, registry
from carbon.models import FactorApproval
from projects.access import require_organisation_role
from projects.records import Actor
from projects.trail import note as note_trail


class ApprovalError(ValueError):
    """An approval that cannot be; the message is for people."""


def approve_factor(
    actor: Actor, *, factor_id: str, version: str, now: datetime, words: str = ""
) -> FactorApproval:
    """Approve a factor as it is now: its version and value.

    Raises:
        LookupError: there is no such factor in the registry.
        ApprovalError: the actor entered it, or it is approved already.
        PermissionDenied: the actor is no administrator.
    """
    require_organisation_role(actor, write=True)
    row = _row(actor, factor_id, version)
    if row.entered_by and row.entered_by == actor.label:
        raise ApprovalError(_("You entered this factor: somebody else has to approve it."))
    try:
        with transaction.atomic():
            approval = FactorApproval.objects.create(
                organisation_id=actor.organisation_id,
                factor_id=row.factor_id,
                version=row.key[1],
                value=row.approved_value,
                approved_by=actor.label[:200],
                approved_at=now,
                note=words[:400],
            )
            note_trail(
                actor,
                "factor.approve",
                subject=("factor", row.factor_id),
                after={"version": row.version, "value": row.approved_value},
                reason=words,
            )
    except IntegrityError as error:
        raise ApprovalError(_("This version and value is approved already.")) from error
    return approval


def _row(actor: Actor, factor_id: str, version: str) -> RegistryRow:
    rows = registry(actor.organisation_id, text=factor_id) if factor_id.isprintable() else ()
    for row in rows:
        if row.factor_id == factor_id and row.version == version:
            return row
    raise LookupError(factor_id)
