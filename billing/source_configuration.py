"""Sources as a section of the configuration document: kind, connection, schedule; no credential."""

import json
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from pydantic import BaseModel, ConfigDict, Field

from billing.adapters import AUTO
from billing.models import Source
from billing.services.sources import SourceWish, change_source, connect_source, document_of
from projects.records import Actor

UPLOAD = "upload"


class SourceSection(BaseModel):
    """One source as a document wants it; what it does not say stays, or is the usual."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=120)
    format: str = AUTO
    kind: str = UPLOAD
    connection: dict[str, str | int | dict[str, str]] = {}
    every_h: int | None = None
    paused: bool = False


def dump(organisation_id: UUID) -> list[dict[str, Any]]:
    """Every source, by name; what is as usual is left out."""
    usual: dict[str, Any] = {"kind": UPLOAD, "connection": {}, "every_h": None, "paused": False}
    sources = Source.objects.filter(organisation_id=organisation_id).order_by("name")
    return [
        {
            name: value
            for name, value in document_of(source).items()
            if name not in usual or value != usual[name]
        }
        for source in sources
    ]


def apply(actor: Actor, wanted: SourceSection) -> list[str]:
    """Bring one source to what the document says; return what changed.

    Raises:
        ValidationError: a part cannot be; the message names the source and the key.
    """
    known = Source.objects.filter(organisation_id=actor.organisation_id, name=wanted.name).first()
    try:
        if known is None:
            connect_source(actor, _wish(wanted, wanted.model_dump()))
            return [f"sources[{wanted.name}]: made"]
        given = {name: getattr(wanted, name) for name in wanted.model_fields_set}
        changed = change_source(actor, known, _wish(wanted, {**document_of(known), **given}))
    except ValidationError as error:
        raise ValidationError(_named(wanted.name, error)) from error
    after = document_of(known)
    return [f"sources[{wanted.name}].{name}: {_shown(after[name])}" for name in changed]


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _wish(wanted: SourceSection, said: dict[str, Any]) -> SourceWish:
    return SourceWish(
        name=wanted.name,
        kind=said["kind"],
        connection=said["connection"],
        bill_format=said["format"],
        every_h=said["every_h"],
        is_paused=said["paused"],
    )


def _named(name: str, error: ValidationError) -> list[str]:
    keys = {"bill_format": "format"}
    if hasattr(error, "error_dict"):
        return [
            f"sources[{name}].{keys.get(key, key)}: {message}"
            for key, messages in error.message_dict.items()
            for message in messages
        ]
    return [f"sources[{name}]: {message}" for message in error.messages]
