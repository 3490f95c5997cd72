"""Configuration as one YAML document: reads, checks, applies and dumps it across the rooms."""

import json
from collections.abc import Hashable, Mapping
from typing import Any, Final, Protocol, cast
from uuid import UUID

import yaml
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.http import Http404

from billing import configuration as billing_configuration
from carbon import configuration as carbon_configuration
from planning import configuration as planning_configuration
from projects import configuration as projects_configuration
from projects.records import Actor
from runs import configuration as runs_configuration
from ui.console import json_ready

FORMAT_VERSION: Final = 1
VERSION_KEY: Final = "version"
# What tells two entries of a section apart, for the list of changes.
IDENTITY: Final[dict[str, tuple[str, ...]]] = {
    "projects": ("slug",),
    "members": ("project", "username"),
    "sites": ("slug",),
    "devices": ("uuid",),
    "runs": ("project", "slug"),
    "assignments": ("project", "site", "run", "start"),
    "accelerators": ("key",),
    "instance_types": ("provider", "name"),
    "sources": ("name",),
    "price_books": ("name",),
    "prices": (
        "book",
        "cost_class",
        "provider",
        "region",
        "accelerator_key",
        "instance_type",
        "purchase",
        "valid_from",
    ),
    "exchange_rates": ("date", "base", "quote"),
    "instruments": ("name", "market_zone", "first_day"),
    "residual_mixes": ("market_zone", "year"),
    "rate_cards": ("site", "valid_from"),
    "milestones": ("project", "name"),
}

Document = dict[str, Any]


class ConfigurationError(ValueError):
    """A document that cannot be applied; the message names the place and what is allowed there."""


class Room(Protocol):
    """What a room offers: the sections it owns, as it is, and as a document wants it."""

    KEYS: tuple[str, ...]

    def dump(self, organisation_id: UUID) -> Mapping[str, Any]:
        """The room's sections as they are now."""

    def apply(self, actor: Actor, document: Mapping[str, Any]) -> object:
        """Bring what the document names to what it says."""


# In the order of dependence: devices need sites, assignments need projects.
ROOMS: Final = cast(
    tuple[Room, ...],
    (
        projects_configuration,
        runs_configuration,
        carbon_configuration,
        billing_configuration,
        planning_configuration,
    ),
)


class _StrictLoader(yaml.SafeLoader):
    """Safe YAML that refuses a key given twice instead of keeping the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """The mapping of a node, each key once."""
        seen: set[object] = set()
        for key_node, _value in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                where = key_node.start_mark
                raise ConfigurationError(
                    f"line {where.line + 1}: {key!r} is given twice; keep one of them"
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def read_document(text: str) -> Document:
    """Parse a configuration document and refuse sections that nobody knows.

    Raises:
        ConfigurationError: no YAML mapping, an unknown section, another format version.
    """
    try:
        document = yaml.load(text, Loader=_StrictLoader)  # noqa: S506 - derives from SafeLoader
    except yaml.YAMLError as error:
        raise ConfigurationError(f"This is not YAML: {error}") from error
    if not isinstance(document, dict):
        raise ConfigurationError(
            f"The document is a {type(document).__name__}; write sections such as 'projects:'"
        )
    version = document.pop(VERSION_KEY, FORMAT_VERSION)
    if version != FORMAT_VERSION:
        raise ConfigurationError(
            f"{VERSION_KEY}: found {version!r}; this Costwatch reads version {FORMAT_VERSION}"
        )
    known = section_names()
    for name in document:
        if name not in known:
            raise ConfigurationError(
                f"{name}: no such section; there are {', '.join(sorted(known))}"
            )
    return document


def section_names() -> set[str]:
    """Every section that some room reads."""
    return {key for room in ROOMS for key in room.KEYS}


def dump_document(organisation_id: UUID) -> Document:
    """The whole configuration of an organisation, as plain JSON types."""
    merged: Document = {}
    for room in ROOMS:
        for section, found in room.dump(organisation_id).items():
            value = json.loads(json.dumps(found, default=json_ready))
            merged[section] = _merged(section, merged.get(section), value)
    return merged


def document_text(document: Document) -> str:
    """A configuration document as YAML."""
    return yaml.safe_dump(
        {VERSION_KEY: FORMAT_VERSION} | document, sort_keys=False, allow_unicode=True, width=100
    )


def apply_document(actor: Actor, document: Document, *, dry_run: bool) -> list[str]:
    """Apply all of a document or nothing, and say what changed.

    Raises:
        ConfigurationError: a room refused a part of it; nothing was changed.
    """
    with transaction.atomic():
        before = dump_document(actor.organisation_id)
        for room in ROOMS:
            _apply_room(room, actor, document)
        after = dump_document(actor.organisation_id)
        _refuse_unread_keys(document, after)
        if dry_run:
            transaction.set_rollback(True)
    return changes_between(before, after)


def _apply_room(room: Room, actor: Actor, document: Document) -> None:
    """Let one room apply its sections, and turn its refusal into one kind of error."""
    try:
        room.apply(actor, document)
    except ValidationError as error:
        raise ConfigurationError("; ".join(error.messages)) from error
    except (ValueError, PermissionDenied, Http404) as error:
        raise ConfigurationError(str(error)) from error


def _refuse_unread_keys(document: Document, after: Document) -> None:
    """Refuse a key of an entry shared by rooms that none of them knows: it would be ignored."""
    for section in ("sites",):
        known = {key for entry in after.get(section) or [] for key in entry}
        for entry in document.get(section) or []:
            for key in entry:
                if key not in known:
                    raise ConfigurationError(
                        f"{section}[{_identity(section, entry)}].{key}: unknown key; "
                        f"known are {', '.join(sorted(known))}"
                    )


def changes_between(before: Document, after: Document) -> list[str]:
    """One line for each entry added (+) or removed (-) and for each changed value."""
    changes: list[str] = []
    for section in sorted({*before, *after}):
        old, new = before.get(section), after.get(section)
        if isinstance(old or new, list):
            changes += _list_changes(section, old or [], new or [])
        else:
            changes += _value_changes(section, old, new)
    return changes


def _list_changes(section: str, old: list[Any], new: list[Any]) -> list[str]:
    """The changes between two lists of entries."""
    old_entries = {_identity(section, entry): entry for entry in old}
    new_entries = {_identity(section, entry): entry for entry in new}
    changes = [f"- {section}[{name}]" for name in old_entries if name not in new_entries]
    for name, entry in new_entries.items():
        if name not in old_entries:
            changes.append(f"+ {section}[{name}]")
        else:
            changes += _value_changes(f"{section}[{name}]", old_entries[name], entry)
    return changes


def _value_changes(path: str, old: Any, new: Any) -> list[str]:
    """The changes between two values, down into mappings."""
    if old == new:
        return []
    if isinstance(old, dict) and isinstance(new, dict):
        return [
            line
            for key in [*old, *(key for key in new if key not in old)]
            for line in _value_changes(f"{path}.{key}", old.get(key), new.get(key))
        ]
    return [f"~ {path}: {_short(old)} -> {_short(new)}"]


def _short(value: Any) -> str:
    """A value as one short line."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 120 else f"{text[:117]}..."


def _identity(section: str, entry: Any) -> str:
    """What names an entry in its section: its identifying keys, else all of it."""
    keys = IDENTITY.get(section, ())
    if isinstance(entry, dict) and keys and all(key in entry for key in keys):
        return "/".join(str(entry[key]) for key in keys if entry[key] not in ("", None))
    return json.dumps(entry, ensure_ascii=False, sort_keys=True, default=str)


def _merged(section: str, known: Any, more: Any) -> Any:
    """One section out of what two rooms say of it, entry by entry."""
    if known is None:
        return more
    if isinstance(known, list) and isinstance(more, list):
        extra = {_identity(section, entry): entry for entry in more}
        return [entry | extra.pop(_identity(section, entry), {}) for entry in known] + list(
            extra.values()
        )
    if isinstance(known, dict) and isinstance(more, dict):
        return known | more
    return more
