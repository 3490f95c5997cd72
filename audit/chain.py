"""The arithmetic of the hash chain: canonical text of an entry, and its SHA-256. No database."""

import hashlib
import json
import math
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

FIRST_HASH = "0" * 64
HASHED_FIELDS = (
    "organisation_id",
    "position",
    "at",
    "user_id",
    "token_id",
    "actor_label",
    "ip",
    "action",
    "object_type",
    "object_id",
    "before",
    "after",
    "reason",
    "previous_hash",
)


def plain(value: Any) -> Any:
    """Return `value` as JSON that PostgreSQL's jsonb gives back unchanged.

    Whole floats become integers (jsonb forgets the exponent), Decimals and ids text, and characters
    that jsonb cannot hold are replaced.
    """
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            return str(value)
        return int(value) if value.is_integer() else value
    if isinstance(value, Mapping):
        return {_text(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, date | datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return format(value, "f")
    return _text(str(value))


def _text(text: str) -> str:
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def hash_of(fields: Mapping[str, Any]) -> str:
    """Return the hash of an entry whose columns are `fields`."""
    content = [plain(fields[name]) for name in HASHED_FIELDS]
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
