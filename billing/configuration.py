"""What people set about charges, as one document: sources, rules, prices, rates; no charges."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import transaction
from pydantic import ValidationError as DocumentError

from billing import allocation_configuration, price_configuration, source_configuration
from projects.access import require_organisation_role
from projects.records import Actor

KEYS = ("sources", "allocation_rules", *price_configuration.KEYS)


class _Document(price_configuration.PriceSections):
    sources: list[source_configuration.SourceSection] = []
    allocation_rules: list[allocation_configuration.Rule] | None = None


def dump(organisation_id: UUID) -> dict[str, Any]:
    """The sources, the allocation rules in force, in their order, prices and exchange rates."""
    return {
        "sources": source_configuration.dump(organisation_id),
        **allocation_configuration.dump(organisation_id),
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
        changes = [
            change
            for source in wanted.sources
            for change in source_configuration.apply(actor, source)
        ]
        changes += allocation_configuration.apply(actor, wanted.allocation_rules)
        changes += price_configuration.apply(actor, wanted)
    return changes
