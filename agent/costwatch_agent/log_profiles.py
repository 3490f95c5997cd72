"""Log profiles: what a training log's lines look like, as data read from TOML; no log is read here.

A profile has rules. A rule says what a line means (a step, an event, a setting) and how to find
each value in it: by a pattern with one group, or by keys where the line is a JSON object.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from costwatch_agent.log_values import pattern
from costwatch_agent.progress import EventKind

BUILT_IN: Final = ("torchtitan", "megatron", "jsonl", "seed-trainer")  # in the order of trying
TROUBLES: Final = "troubles"
# Beside an event's kind; `event`: the line itself names the kind.
MEANINGS: Final = frozenset({"step", "setting", "carry", "amend", "event"}) | {
    str(kind) for kind in EventKind
}
NUMBERS: Final = frozenset(
    {
        "step", "tokens_total", "step_time_s", "step_time_ms", "world_size", "loss", "grad_norm",
        "learning_rate", "data_s", "communication_s", "checkpoint_s", "reported_mfu_fraction",
        "tokens_per_step", "tokens_per_s", "tokens_per_s_per_device", "samples_total",
        "batch_samples", "sequence_length", "to_step", "duration_s",
    }
)  # fmt: skip
SETTINGS: Final = frozenset({"sequence_length", "batch_samples", "world_size", "tokens_per_step"})
LATER: Final = frozenset({"data_s", "communication_s", "checkpoint_s"})
ALLOWED: Final = {"setting": SETTINGS, "carry": frozenset({"checkpoint_s"}), "amend": LATER}
TEXTS: Final = frozenset({"data_shard", "detail", "kind"})


class ProfileError(ValueError):
    """A profile that cannot be used; the text says where and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """How one value is found in a line, and its unit's factor."""

    name: str
    find: re.Pattern[str] | None = None
    keys: tuple[str, ...] = ()
    factor: float = 1.0
    add: float = 0.0
    missing: tuple[float, ...] = ()  # values that stand for none
    product: bool = False  # the group holds factors: multiply them
    percent_above_one: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What a kind of line means."""

    means: str
    match: re.Pattern[str] | None  # None: a JSON object
    contains: tuple[str, ...]  # in lower case: one of them is in the line, or match is not tried
    fields: tuple[Field, ...]
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A log's format."""

    name: str
    rules: tuple[Rule, ...]
    is_json: bool = False
    instant_keys: tuple[str, ...] = ()
    instant_find: tuple[re.Pattern[str], ...] = ()
    rank: re.Pattern[str] | None = None  # which process printed the line


def profile_named(name: str) -> Profile:
    """A built-in profile by its name, or one from a TOML file. ProfileError: there is none."""
    if name in BUILT_IN or name == TROUBLES:
        source = files("costwatch_agent") / "profiles" / f"{name}.toml"
        return parse(source.read_text("utf-8"), where=name)
    if not name.endswith(".toml"):
        raise ProfileError(
            f"{name!r} is no profile: write one of {', '.join(BUILT_IN)}, or a .toml"
        )
    try:
        return parse(Path(name).read_text("utf-8"), where=name)
    except (OSError, UnicodeDecodeError) as error:
        raise ProfileError(f"the profile {name} cannot be read: {error}") from error


def parse(text: str, *, where: str) -> Profile:
    """A profile from TOML."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ProfileError(f"{where}: {error}") from error
    try:
        _known(document, {"name", "json", "instant", "rank", "line"}, "the profile")
        instant, rank = document.get("instant", {}), document.get("rank", {})
        _known(instant, {"find", "keys"}, "[instant]")
        _known(rank, {"find"}, "[rank]")
        return Profile(
            name=str(document.get("name", where)),
            is_json=bool(document.get("json", False)),
            instant_keys=_texts(instant.get("keys", [])),
            instant_find=tuple(_pattern(text) for text in _texts(instant.get("find", []))),
            rank=_pattern(rank["find"]) if "find" in rank else None,
            rules=tuple(
                _rule(line, number, is_json=bool(document.get("json", False)))
                for number, line in enumerate(document.get("line", []), 1)
            ),
        )
    except ProfileError as error:
        raise ProfileError(f"{where}: {error}") from error


def _rule(line: Mapping[str, Any], number: int, *, is_json: bool) -> Rule:
    at = f"[[line]] {number}"
    _known(line, {"means", "match", "contains", "ignore_case", "detail", "fields"}, at)
    means = line.get("means")
    if means not in MEANINGS:
        raise ProfileError(f"{at}: means = {means!r}; write one of {', '.join(sorted(MEANINGS))}")
    if "match" not in line and not is_json:
        raise ProfileError(f"{at}: it has no match, and the profile is not json = true")
    ignore_case = bool(line.get("ignore_case", False))
    found = tuple(
        _field(name, entry, at=at, ignore_case=ignore_case)
        for name, entry in line.get("fields", {}).items()
    )
    names = {field.name for field in found}
    if means == "step" and "step" not in names:
        raise ProfileError(f"{at}: a step needs the field step")
    if names - ALLOWED.get(means, NUMBERS | TEXTS):
        raise ProfileError(f"{at}: {means} may hold {', '.join(sorted(ALLOWED[means]))}")
    match = _pattern(line["match"], ignore_case=ignore_case) if "match" in line else None
    return Rule(
        means=means,
        match=match,
        contains=tuple(text.lower() for text in _texts(line.get("contains", []))),
        fields=found,
        detail=str(line.get("detail", "")),
    )


def _field(name: str, entry: Any, *, at: str, ignore_case: bool) -> Field:
    if name not in NUMBERS | TEXTS:
        raise ProfileError(
            f"{at}: no field is called {name!r}: {', '.join(sorted(NUMBERS | TEXTS))}"
        )
    if not isinstance(entry, dict) or ("find" in entry) == ("keys" in entry):
        raise ProfileError(f"{at}, {name}: write either find or keys")
    known = {"find", "keys", "factor", "add", "missing", "product", "percent_above_one"}
    _known(entry, known, f"{at}, {name}")
    find = _pattern(entry["find"], ignore_case=ignore_case) if "find" in entry else None
    if find is not None and find.groups != 1:
        raise ProfileError(f"{at}, {name}: find has {find.groups} groups; one holds the value")
    return Field(
        name=name,
        find=find,
        keys=_texts(entry.get("keys", [])),
        factor=float(entry.get("factor", 1.0)),
        add=float(entry.get("add", 0.0)),
        missing=tuple(float(value) for value in entry.get("missing", [])),
        product=bool(entry.get("product", False)),
        percent_above_one=bool(entry.get("percent_above_one", False)),
    )


def _known(found: Any, names: set[str], where: str) -> None:
    if not isinstance(found, dict):
        raise ProfileError(f"{where}: a table is expected")
    if unknown := set(found) - names:
        raise ProfileError(f"{where}: {', '.join(sorted(unknown))} is not known")


def _texts(found: Any) -> tuple[str, ...]:
    if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
        raise ProfileError("find of [instant], keys and contains are lists of texts")
    return tuple(found)


def _pattern(text: Any, *, ignore_case: bool = False) -> re.Pattern[str]:
    try:
        return pattern(str(text), ignore_case=ignore_case)
    except re.error as error:
        raise ProfileError(f"the pattern {text!r}: {error}") from error
