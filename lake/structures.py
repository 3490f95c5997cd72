"""Cells that hold structures: JSON, Azure's tags, Python's repr; every number keeps its text."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lake.refusing import sql_name, sql_text

if TYPE_CHECKING:
    import pyarrow as pa

UNREADABLE: Final = "x_unreadable"
BATCH: Final = 20_000
MAX_DEPTH: Final = 16
# What may stand beside a key: Google's tags say whence they are.
PAIR_FIELDS: Final = frozenset({"value", "inherited", "namespace"})
# A number would lose its text in the engine's JSON, and a NUL or half a letter is no text. A number
# follows the quotation mark and colon of its key, or stands in a list.
UNSAFE: Final = r'"\s*:\s*-?[0-9]|[\[,]\s*-?[0-9]|\\u(0000|[dD][89a-fA-F])'
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(?P<mark>[][{}:,])|(?P<word>[^\s][^][{}:,\s]*))""",
    re.DOTALL,
)
_NUMBER: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "\n": ""}
_WORDS: Final = {"None": None, "null": None, "True": True, "true": True}
_WORDS_FALSE: Final = ("False", "false")

Pairs = list[tuple[str, str | None]]


class _Number(str):
    """A number's own text."""


def as_map(text: str) -> Pairs | None:
    """The keys and values of an object, a list of {key, value}, or Azure's braceless tags."""
    value = _value(text)
    if isinstance(value, list) and all(_is_pair(item) for item in value):
        counts = Counter(_shown(item["key"]) for item in value)
        value = [(_key(item, counts), item.get("value")) for item in value]
    elif isinstance(value, dict):
        value = list(value.items())
    else:
        return None
    return _pairs(value)


def as_list(text: str) -> list[Pairs] | None:
    """The objects of a list, each as keys and values."""
    value = _value(text)
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        return None
    maps = [_pairs(list(item.items())) for item in value]
    return None if None in maps else [pairs for pairs in maps if pairs is not None]


def _key(item: dict[str, Any], counts: Counter[str]) -> str:
    """The pair's key; with its namespace before it where the list has the key more than once."""
    key = _shown(item["key"])
    namespace = item.get("namespace")
    return f"{_shown(namespace)}/{key}" if counts[key] > 1 and namespace else key


def _is_pair(item: Any) -> bool:
    return isinstance(item, dict) and "key" in item and set(item) <= PAIR_FIELDS | {"key"}


def _pairs(items: list[tuple[Any, Any]]) -> Pairs | None:
    """Keys and texts; None when a key stands twice or a text cannot be stored."""
    pairs = [(str(key), None if value is None else _shown(value)) for key, value in items]
    keys = {key for key, _ in pairs}
    if len(keys) < len(pairs):
        return None
    return pairs if all(_is_storable(one) for pair in pairs for one in pair if one) else None


def _is_storable(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def _value(text: str) -> Any:
    """What the text says, in whichever of the known spellings; None when it is none of them."""
    plain = text.strip()
    spellings = [plain]
    if plain.startswith('"') and plain.endswith('"'):
        spellings = ["{" + plain + "}"]
    if '"' not in plain and "\\" not in plain:
        spellings.append(plain.replace("'", '"'))
    for spelling in spellings:
        try:
            return json.loads(
                spelling, parse_float=_Number, parse_int=_Number, object_pairs_hook=_object
            )
        except (ValueError, RecursionError):
            continue
    try:
        return _Repr(plain).read()
    except ValueError:
        return None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found


def _shown(value: Any) -> str:
    """A value as text: a text as it is, a number as it was written, the rest as JSON."""
    if isinstance(value, str):
        return str(value)
    return _json(value)


def _json(value: Any) -> str:
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, dict):
        inner = ",".join(
            f"{json.dumps(str(key), ensure_ascii=False)}:{_json(one)}" for key, one in value.items()
        )
        return "{" + inner + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_json, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


class _Repr:
    """Reads what Python prints of dicts and lists, with single quotes; evaluates nothing."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def read(self) -> Any:
        """The value.

        Raises:
            ValueError: the text is no such value, or something follows it.
        """
        value = self._one(0)
        if self.text[self.at :].strip():
            raise ValueError("something follows")
        return value

    def _token(self) -> tuple[str, str]:
        found = _TOKEN.match(self.text, self.at)
        if found is None or found.lastgroup is None:
            raise ValueError("cut short")
        self.at = found.end()
        return found.lastgroup, found[found.lastgroup]

    def _one(self, depth: int) -> Any:
        kind, token = self._token()
        if kind == "text":
            return _unescaped(token)
        if kind == "word":
            return _word(token)
        if depth >= MAX_DEPTH or token not in ("{", "["):
            raise ValueError("unexpected")
        return self._object(depth) if token.startswith("{") else self._list(depth)

    def _object(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self._closes("}"):
            return found
        while True:
            kind, key = self._token()
            if kind != "text" or _unescaped(key) in found:
                raise ValueError("no key, or twice")
            self._expect(":")
            found[_unescaped(key)] = self._one(depth + 1)
            if self._ends("}"):
                return found

    def _list(self, depth: int) -> list[Any]:
        found: list[Any] = []
        if self._closes("]"):
            return found
        while True:
            found.append(self._one(depth + 1))
            if self._ends("]"):
                return found

    def _closes(self, mark: str) -> bool:
        before = self.at
        if self._token()[1] == mark:
            return True
        self.at = before
        return False

    def _expect(self, mark: str) -> None:
        if self._token() != ("mark", mark):
            raise ValueError("unexpected")

    def _ends(self, mark: str) -> bool:
        kind, token = self._token()
        if kind != "mark" or token not in (mark, ","):
            raise ValueError("unexpected")
        return token == mark


def _unescaped(token: str) -> str:
    return re.sub(
        r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), token[1:-1], flags=re.DOTALL
    )


def _word(token: str) -> Any:
    if token in _WORDS:
        return _WORDS[token]
    if token in _WORDS_FALSE:
        return False
    if not _NUMBER.fullmatch(token):
        raise ValueError("no value")
    return _Number(token)


def write_lookup(engine: Any, source: str, column: str, *, is_list: bool, target: Path) -> int:
    """Write what each different text of a column means; return the rows that nobody can read.

    `source` is the table in the engine's words. The engine's own JSON reads what it reads exactly,
    Python the rest. An unreadable text is kept under UNREADABLE.
    """
    sql_type = "MAP(VARCHAR, VARCHAR)[]" if is_list else "MAP(VARCHAR, VARCHAR)"
    name = sql_name(column)
    engine.execute(
        f"CREATE OR REPLACE TABLE known AS SELECT text, CASE WHEN NOT regexp_matches(text, "  # noqa: S608  # our own texts, quoted
        f"{sql_text(UNSAFE)}) THEN TRY_CAST(TRY_CAST(text AS JSON) AS {sql_type}) END AS value "
        f"FROM (SELECT DISTINCT {name} AS text FROM {source} WHERE {name} NOT IN ('', 'NULL'))"
    )
    engine.execute(f"CREATE OR REPLACE TABLE read (text VARCHAR, value {sql_type}, bad BOOL)")
    asking = engine.cursor()
    asking.execute("SELECT text FROM known WHERE value IS NULL")
    while batch := asking.fetchmany(BATCH):
        table = _read_batch([text for (text,) in batch], is_list=is_list)
        engine.register("batch", table)
        engine.execute("INSERT INTO read SELECT * FROM batch")
        engine.unregister("batch")
    engine.execute(
        "COPY (SELECT text, value FROM known WHERE value IS NOT NULL UNION ALL "  # noqa: S608  # our own texts, quoted
        f"SELECT text, value FROM read) TO {sql_text(str(target))} (FORMAT parquet)"
    )
    if not engine.execute("SELECT count(*) FROM read WHERE bad").fetchall()[0][0]:
        return 0
    bad = engine.execute(
        f"SELECT count(*) FROM {source} WHERE {name} IN (SELECT text FROM read WHERE bad)"  # noqa: S608  # our own texts, quoted
    ).fetchall()
    return int(bad[0][0])


def _read_batch(texts: list[str], *, is_list: bool) -> "pa.Table":
    import pyarrow as pa  # takes as long to import as a small file to read

    values: list[Any] = []
    bad: list[bool] = []
    for text in texts:
        value: Any = as_list(text) if is_list else as_map(text)
        bad.append(value is None)
        if value is None:
            kept = [(UNREADABLE, text)]
            value = [kept] if is_list else kept
        values.append(value)
    one = pa.map_(pa.string(), pa.string())
    kind = pa.list_(one) if is_list else one
    return pa.table({"text": texts, "value": pa.array(values, type=kind), "bad": bad})
