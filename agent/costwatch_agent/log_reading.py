"""Reads a training log's lines by a profile: points and events come out; no file is opened here."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import tzinfo
from typing import Any, Final

from costwatch_agent.log_matching import (
    Values,
    applies,
    json_object,
    numbers_of,
    spoken,
    values_of,
)
from costwatch_agent.log_profiles import Profile, Rule
from costwatch_agent.log_values import at_path, instant_ms, plain
from costwatch_agent.progress import MAX_TEXT, Event, EventKind, Point, begun_ms, count_of
from costwatch_agent.records import Document

AGAIN_MS: Final = (
    60_000  # an event that several ranks print, or a trouble that goes on, is told once
)
MAX_LINE: Final = 65_536
KINDS: Final = {
    "start": EventKind.START, "train_start": EventKind.START, "train_begin": EventKind.START,
    "restart": EventKind.RESTART, "resume": EventKind.RESTART, "resumed": EventKind.RESTART,
    "checkpoint": EventKind.CHECKPOINT, "ckpt_saved": EventKind.CHECKPOINT,
    "checkpoint_saved": EventKind.CHECKPOINT, "save_checkpoint": EventKind.CHECKPOINT,
    "rollback": EventKind.ROLLBACK,
    "stop": EventKind.STOP, "train_end": EventKind.STOP, "training_completed": EventKind.STOP,
}  # fmt: skip
NO_EVENTS: Final = frozenset({"step", "train", "training", "log", "metrics", "eval", "info"})
Item = Point | Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the log's owner said, because not every log says it."""

    tokens_per_step: int | None = None
    world_size: int | None = None
    zone: tzinfo | None = None
    rank: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _At:
    """When a line was written: as it says itself, and as far as is known."""

    said_ms: int | None
    instant_ms: int | None


@dataclass(slots=True)
class Memory:
    """What of the lines before is needed for those to come; it survives a restart of the agent."""

    sequence_length: float | None = None
    batch_samples: float | None = None
    world_size: float | None = None
    tokens_per_step: float | None = None
    carried: dict[str, float] = field(default_factory=dict)
    rank: int | None = None
    from_step: int = 0  # where this start of the run goes on from
    last_step: int | None = None
    last_step_ms: int | None = None  # None: the line did not say when
    last_ms: int | None = None  # of the last line that said when it was written
    told_ms: dict[str, int] = field(default_factory=dict)


class LogReader:
    """Reads one file's lines in their order."""

    def __init__(
        self, profile: Profile, troubles: Profile, told: Told, *, memory: Document | None = None
    ) -> None:
        self.profile = profile
        self._troubles = troubles.rules
        self._told = told
        self.memory = Memory()
        for name, value in (memory or {}).items():
            if name in Memory.__slots__:
                setattr(self.memory, name, value)
        self._held: Point | None = None  # the newest, which lines that follow may amend
        self._undated: list[tuple[Rule, Values]] = []  # events before the first instant

    def remembered(self) -> Document:
        """The memory, to keep."""
        return asdict(self.memory)

    def read(self, line: str, *, at_ms: int | None) -> Iterator[Item]:
        """What a line tells. `at_ms`: when it arrived, where it may be dated by that."""
        text = plain(line[:MAX_LINE])
        found = json_object(text) if self.profile.is_json else None
        said_ms = self._instant(text, found)
        if said_ms is not None:
            self.memory.last_ms = said_ms
        elif at_ms is None:
            at_ms = self.memory.last_ms
        at = _At(said_ms=said_ms, instant_ms=said_ms if said_ms is not None else at_ms)
        if at.instant_ms is not None and self._undated:
            waiting, self._undated = self._undated, []
            for rule, values in waiting:
                yield from self._event(rule, values, at)
        lower = text.lower()
        for rule in self.profile.rules:
            if applies(rule, text, lower, found):
                yield from self._by_rule(rule, text, found, at)
        yield from self._trouble(spoken(text, found), at.instant_ms)

    def release(self) -> Iterator[Item]:
        """The point that was held for lines that might amend it."""
        if self._held is not None:
            yield self._held
            self._held = None

    def dates(self, line: str) -> bool:
        """Whether a line says itself when it was written."""
        text = plain(line[:MAX_LINE])
        found = json_object(text) if self.profile.is_json else None
        return self._instant(text, found) is not None

    def _instant(self, text: str, found: Document | None) -> int | None:
        for key in self.profile.instant_keys if found is not None else ():
            at_ms = instant_ms(at_path(found or {}, key), self._told.zone)
            if at_ms is not None:
                return at_ms
        for find in self.profile.instant_find:
            if (match := find.search(text)) is not None:
                return instant_ms(match[1], self._told.zone)
        return None

    def _by_rule(self, rule: Rule, text: str, found: Document | None, at: _At) -> Iterator[Item]:
        values = values_of(rule, text, found)
        if rule.means in {"setting", "carry", "amend"}:
            self._note(rule.means, numbers_of(values))
        elif rule.means == "step":
            if at.instant_ms is not None:  # else it is old, and nothing says how old
                yield from self._step(values, text, at)
        elif at.instant_ms is None:
            self._undated = [*self._undated[-9:], (rule, values)]
        else:
            yield from self._event(rule, values, at)

    def _note(self, means: str, numbers: dict[str, float]) -> None:
        """What lines say that are no step themselves."""
        if means == "setting":
            for name, value in numbers.items():
                setattr(self.memory, name, value)
        elif means == "carry":
            self.memory.carried |= numbers
        elif self._held is not None:
            found: dict[str, Any] = dict(numbers)
            self._held = replace(self._held, **found)

    # --- steps

    def _step(self, values: Values, text: str, at: _At) -> Iterator[Item]:
        numbers = numbers_of(values)
        step = count_of(numbers.get("step"))
        if step is None or len(values) < 2 or not self._is_our_rank(text):
            return
        memory = self.memory
        if step == memory.last_step:  # several ranks print it
            return
        yield from self.release()
        step_time_s = self._step_time_s(numbers, step, at.said_ms)
        self._held = Point(
            at_ms=self._advanced(at, step, step_time_s),
            step=step,
            tokens_total=self._tokens_total(numbers, step),
            step_time_s=step_time_s,
            world_size=count_of(numbers.get("world_size") or self._world_size()),
            loss=numbers.get("loss"),
            grad_norm=numbers.get("grad_norm"),
            learning_rate=numbers.get("learning_rate"),
            data_s=numbers.get("data_s"),
            communication_s=numbers.get("communication_s"),
            checkpoint_s=numbers.get("checkpoint_s", memory.carried.get("checkpoint_s")),
            reported_mfu_fraction=numbers.get("reported_mfu_fraction"),
            data_shard=str(values.get("data_shard", ""))[:MAX_TEXT],
        )
        memory.carried = {}
        memory.last_step, memory.last_step_ms = step, at.said_ms

    def _advanced(self, at: _At, step: int, step_time_s: float | None) -> int:
        """The instant of a step: of an old line that names none, the last one known, and on."""
        memory, instant_ms = self.memory, at.instant_ms or 0
        if at.said_ms is not None or instant_ms != memory.last_ms or not step_time_s:
            return instant_ms
        before = memory.from_step if memory.last_step is None else memory.last_step
        memory.last_ms = instant_ms + round(step_time_s * max(step - before, 1) * 1000)
        return memory.last_ms

    def _is_our_rank(self, text: str) -> bool:
        """One process speaks for the run: the one that was named, else the first that is heard."""
        match = self.profile.rank.search(text) if self.profile.rank is not None else None
        if match is None:
            return True
        if self._told.rank is not None:
            return int(match[1]) == self._told.rank
        if self.memory.rank is None:
            self.memory.rank = int(match[1])
        return int(match[1]) == self.memory.rank

    def _world_size(self) -> float | None:
        return self._told.world_size or self.memory.world_size

    def _tokens_per_step(self, numbers: dict[str, float]) -> float | None:
        if self._told.tokens_per_step:
            return self._told.tokens_per_step
        said = numbers.get("tokens_per_step", self.memory.tokens_per_step)
        batch = numbers.get("batch_samples", self.memory.batch_samples)
        if said is None and batch and self.memory.sequence_length:
            return batch * self.memory.sequence_length
        return said

    def _tokens_total(self, numbers: dict[str, float], step: int) -> int | None:
        """What was told beats what the line says; samples beat steps, for batches may grow."""
        if self._told.tokens_per_step:
            return count_of(float(step * self._told.tokens_per_step))
        if "tokens_total" in numbers:
            return count_of(numbers["tokens_total"])
        if "samples_total" in numbers and self.memory.sequence_length:
            return count_of(numbers["samples_total"] * self.memory.sequence_length)
        a_step = self._tokens_per_step(numbers)
        return count_of(a_step * step) if a_step and "samples_total" not in numbers else None

    def _step_time_s(
        self, numbers: dict[str, float], step: int, said_ms: int | None
    ) -> float | None:
        """As the line says, else from its tokens a second, else from the instants of two lines."""
        said_s = numbers.get("step_time_s")
        if said_s is None and "step_time_ms" in numbers:
            said_s = numbers["step_time_ms"] / 1000
        if said_s is not None:  # a log may print NaN or inf: then nobody knows it
            return said_s if math.isfinite(said_s) and said_s > 0 else None
        a_step, rate = self._tokens_per_step(numbers), numbers.get("tokens_per_s", 0.0)
        if not rate:
            rate = numbers.get("tokens_per_s_per_device", 0.0) * (self._world_size() or 0)
        if a_step and rate > 0:
            return round(a_step / rate, 6)
        before, before_ms = self.memory.last_step, self.memory.last_step_ms
        if said_ms is None or before is None or before_ms is None or step <= before:
            return None
        return round((said_ms - before_ms) / 1000 / (step - before), 6) or None

    # --- events

    def _event(self, rule: Rule, values: Values, at: _At) -> Iterator[Item]:
        named = self._kind(rule, values)
        if named is None:
            return
        kind, detail = named
        numbers, memory, at_ms = numbers_of(values), self.memory, at.instant_ms or 0
        duration_s = numbers.get("duration_s")
        said, to_step = count_of(numbers.get("step")), count_of(numbers.get("to_step"))
        step = memory.last_step if said is None else said
        again = step if kind is EventKind.CHECKPOINT else to_step
        if not self._is_news(f"{kind} {again} {detail}", at_ms):
            return
        yield from self.release()
        if kind in {EventKind.START, EventKind.RESTART, EventKind.ROLLBACK}:
            memory.last_step = memory.last_step_ms = memory.rank = None  # steps may come again
            memory.from_step = to_step or 0
        yield Event(
            at_ms=begun_ms(at_ms, duration_s),
            kind=kind,
            step=step,
            to_step=to_step,
            detail=detail[:MAX_TEXT],
            duration_s=duration_s,
        )

    def _kind(self, rule: Rule, values: Values) -> tuple[EventKind, str] | None:
        """The kind of an event and its detail; an unknown name is a note, unless a step has it."""
        detail = str(values.get("detail", rule.detail))
        if rule.means != "event":
            return EventKind(rule.means), detail
        name = str(values.get("kind", "")).lower()
        if name in KINDS:
            return KINDS[name], detail
        if not name or name in NO_EVENTS:
            return None
        return EventKind.NOTE, f"{name}: {detail}" if detail else name

    def _trouble(self, text: str, at_ms: int | None) -> Iterator[Item]:
        """One note for all that is wrong with a line; what goes on is told once a minute."""
        if at_ms is None or not text:
            return
        lower = text.lower()
        found = [
            f"{rule.detail}: {' '.join(match[match.lastindex or 0].split())}"
            for rule in self._troubles
            if not rule.contains or any(hint in lower for hint in rule.contains)
            if rule.match is not None and (match := rule.match.search(text)) is not None
            if self._is_news(rule.detail, at_ms)
        ]
        if found:
            yield from self.release()
            yield Event(
                at_ms=at_ms,
                kind=EventKind.NOTE,
                step=self.memory.last_step,
                detail="; ".join(found)[:MAX_TEXT],
            )

    def _is_news(self, key: str, at_ms: int) -> bool:
        told = self.memory.told_ms
        if 0 <= at_ms - told.get(key, at_ms - AGAIN_MS) < AGAIN_MS:
            return False
        told[key] = at_ms
        if len(told) > 100:
            del told[min(told, key=lambda name: told[name])]
        return True


class UndecidedReader:
    """Reads by every profile until one finds a step: then that one is the log's."""

    MAX_HELD: Final = 200

    def __init__(self, readers: Sequence[LogReader]) -> None:
        self._held: dict[LogReader, list[Item]] = {reader: [] for reader in readers}
        only = readers[0] if len(readers) == 1 else None
        self.chosen: LogReader | None = only

    @property
    def candidates(self) -> list[LogReader]:
        """Those that may still be chosen."""
        return list(self._held)

    def read(self, line: str, *, at_ms: int | None) -> Iterator[Item]:
        """As LogReader's."""
        if self.chosen is not None:
            yield from self.chosen.read(line, at_ms=at_ms)
            return
        for reader, held in self._held.items():
            held.extend(reader.read(line, at_ms=at_ms))
            if reader.memory.last_step is not None:
                self.chosen = reader
                yield from held
                self._held = {}
                return
            del held[: -self.MAX_HELD]

    def release(self) -> Iterator[Item]:
        """As LogReader's."""
        if self.chosen is not None:
            yield from self.chosen.release()
