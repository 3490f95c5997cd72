"""What people set about charges, as one document: sources, rules, prices, rates; no charges."""

from collections.abc import Mapping
from typing import Any, Literal
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import transaction
from pydantic import BaseModel, ConfigDict, Field
from pydantic import ValidationError as DocumentError

from billing import price_configuration
from billing.adapters import AUTO, FORMATS
from billing.models import Source
from billing.selectors import newest_rule_set
from billing.services.allocation import RuleWish, replace_rules, wishes_of
from billing.services.receiving import ensure_source
from projects.access import require_organisation_role
from projects.records import Actor
from projects.trail import note

KEYS = ("sources", "allocation_rules", *price_configuration.KEYS)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Source(_Strict):
    name: str = Field(min_length=1, max_length=120)
    format: str = AUTO


class _Rule(_Strict):
    match: Literal["sub_account", "tag", "resource"]
    key: str = ""
    value: str = Field(min_length=1, max_length=500)
    project: str


class _Document(price_configuration.PriceSections):
    sources: list[_Source] = []
    allocation_rules: list[_Rule] | None = None


def dump(organisation_id: UUID) -> dict[str, Any]:
    """The sources, the allocation rules in force, in their order, prices and exchange rates."""
    sources = Source.objects.filter(organisation_id=organisation_id).order_by("name")
    return {
        "sources": [{"name": source.name, "format": source.bill_format} for source in sources],
        "allocation_rules": [
            {
                "match": wish.match,
                **({"key": wish.key} if wish.key else {}),
                "value": wish.value,
                "project": wish.project,
            }
            for wish in wishes_of(newest_rule_set(organisation_id))
        ],
        **price_configuration.dump(organisation_id),
    }


def apply(actor: Actor, document: Mapping[str, Any]) -> list[str]:
    """Bring sources, rules and prices to what the document says; return what changed.

    Sources, prices and rates that it does not name stay; a list of rules replaces all rules.

    Raises:
        ValueError: a part cannot be; the message names the place.
        PermissionDenied: the actor's role does not reach over the organisation.
    """
    try:
        wanted = _Document.model_validate(document)
    except DocumentError as error:
        places = [
            f"{'.'.join(str(part) for part in one['loc'])}: {one['msg']}" for one in error.errors()
        ]
        raise ValueError("; ".join(places)) from error
    if not wanted.model_dump(exclude_defaults=True):
        return []
    require_organisation_role(actor, write=True)
    with transaction.atomic():
        changes = [change for source in wanted.sources for change in _apply_source(actor, source)]
        if wanted.allocation_rules is not None:
            wishes = [RuleWish(**rule.model_dump()) for rule in wanted.allocation_rules]
            if replace_rules(actor, wishes):
                changes.append(f"allocation_rules: {len(wishes)} in force")
        changes += price_configuration.apply(actor, wanted)
    return changes


def _apply_source(actor: Actor, wanted: _Source) -> list[str]:
    if wanted.format not in FORMATS:
        raise ValidationError(
            f"sources[{wanted.name}].format: {wanted.format!r} is not one of {', '.join(FORMATS)}"
        )
    known = Source.objects.filter(organisation_id=actor.organisation_id, name=wanted.name).first()
    if known is None:
        ensure_source(actor, wanted.name, wanted.format)
        return [f"sources[{wanted.name}]: made"]
    if known.bill_format == wanted.format:
        return []
    before = {"format": known.bill_format}
    known.bill_format = wanted.format
    known.save(update_fields=["bill_format"])
    after = {"format": known.bill_format}
    note(actor, "source.change", subject=("source", known.pk), before=before, after=after)
    return [f"sources[{wanted.name}].format: {known.bill_format}"]
