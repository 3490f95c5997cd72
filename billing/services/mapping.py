"""Keeps how a source's own CSV is read: a person's mapping of its columns."""

from django.db import transaction

from billing.adapters.mapped import NAME, ColumnMapping
from billing.models import Source
from billing.services.receiving import ensure_source
from projects.records import Actor
from projects.trail import note


def save_mapping(actor: Actor, source_name: str, mapping: ColumnMapping) -> Source:
    """Read this source's files by the mapping from now on; what is published stays.

    Raises:
        ChargesRefusedError: the mapping cannot give charges.
        ValidationError: the source's name cannot be.
    """
    mapping.check()
    with transaction.atomic():
        source = ensure_source(actor, source_name, NAME)
        before = {"format": source.bill_format, "mapping": source.mapping}
        source.bill_format, source.mapping = NAME, mapping.as_document()
        source.save(update_fields=["bill_format", "mapping"])
        after = {"format": NAME, "mapping": source.mapping}
        note(actor, "source.map", subject=("source", source.pk), before=before, after=after)
    return source
