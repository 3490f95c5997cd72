"""The rows that priors rest on (planning/data): published runs, throughput, classes; no fit."""

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from formulae.beliefs import Triangular
from formulae.flop_terms import FlopTerm, model_flop_per_token, train_flop_terms
from formulae.model_description import ModelDescription, StackOutline
from formulae.units import strict_float

DATA: Final = Path(__file__).resolve().parent / "data"
SIXTEEN_BIT: Final = ("bf16", "fp16")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRun:
    """A published run. `billed_ratio` is healthy over billed time where both were published; `use`
    is fit, or shown where the note says why it cannot be fitted.
    """

    key: str
    name: str
    family: str
    year: int
    architecture: str
    params: float
    active_params: float
    layers: int | None
    hidden: int | None
    seq_len: int | None
    tokens: float
    accelerator_key: str
    accelerators: int | None
    precision: str
    accelerator_h: float
    billed_ratio: float | None
    use: str
    note: str
    source: str

    @property
    def is_moe(self) -> bool:
        """Whether it is a mixture of experts."""
        return self.architecture == "moe"

    @property
    def terms(self) -> tuple[FlopTerm, ...]:
        """FLOP of one token, from what was published of its shape."""
        outline = StackOutline(layers=self.layers, hidden=self.hidden)
        model = ModelDescription(
            stated_params=self.params, stated_active_params=self.active_params, outline=outline
        )
        return train_flop_terms(model, seq_len=self.seq_len)

    @property
    def flop(self) -> float:
        """Model FLOP of the run."""
        return model_flop_per_token(self.terms) * self.tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """What one accelerator was seen to reach, in model FLOP/s."""

    model: str
    architecture: str
    accelerator_key: str
    accelerators: int | None
    precision: str
    seq_len: int | None
    model_flop_per_s: float
    kind: str
    date: str
    software: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """A hardware generation: which accelerators it holds, and how it compares before any run."""

    key: str
    first_year: float
    pattern: str
    prior_mean: float | None
    prior_sd: float | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HardwareUse:
    """What a class of accelerators draws, or what stands around it, as a range with its source."""

    quantity: str
    belief: Triangular
    unit: str
    source: str


def _rows(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


def _number(text: str) -> float | None:
    return strict_float(text) if text else None


def _whole(text: str) -> int | None:
    return int(text) if text else None


@cache
def training_runs() -> tuple[TrainingRun, ...]:
    """The published runs of training_runs.csv."""
    return tuple(
        TrainingRun(
            key=row["id"],
            name=row["name"],
            family=row["family"],
            year=int(row["year"]),
            architecture=row["architecture"],
            params=strict_float(row["params"]),
            active_params=strict_float(row["active_params"]),
            layers=_whole(row["layers"]),
            hidden=_whole(row["hidden"]),
            seq_len=_whole(row["seq_len"]),
            tokens=strict_float(row["tokens"]),
            accelerator_key=row["accelerator_key"],
            accelerators=_whole(row["accelerators"]),
            precision=row["precision"],
            accelerator_h=strict_float(row["accelerator_h"]),
            billed_ratio=_number(row["billed_ratio"]),
            use=row["use"],
            note=row["note"],
            source=row["source"],
        )
        for row in _rows("training_runs.csv")
    )


@cache
def throughputs() -> tuple[Throughput, ...]:
    """The observed throughput of throughput.csv."""
    return tuple(
        Throughput(
            model=row["model"],
            architecture=row["architecture"],
            accelerator_key=row["accelerator_key"],
            accelerators=_whole(row["accelerators"]),
            precision=row["precision"],
            seq_len=_whole(row["seq_len"]),
            model_flop_per_s=strict_float(row["model_flop_per_s"]),
            kind=row["kind"],
            date=row["date"],
            software=row["software"],
            source=row["source"],
        )
        for row in _rows("throughput.csv")
    )


@cache
def generations() -> tuple[Generation, ...]:
    """The hardware generations of generations.csv, first match first."""
    return tuple(
        Generation(
            key=row["generation"],
            first_year=strict_float(row["first_year"]),
            pattern=row["pattern"],
            prior_mean=_number(row["prior_mean"]),
            prior_sd=_number(row["prior_sd"]),
            why=row["why"],
        )
        for row in _rows("generations.csv")
    )


def generation_of(accelerator_key: str) -> Generation:
    """The generation of a catalogue key; the last one takes what no other does."""
    return next(item for item in generations() if re.search(item.pattern, accelerator_key))


@cache
def _hardware_use() -> Mapping[str, tuple[tuple[str, HardwareUse], ...]]:
    found: dict[str, tuple[tuple[str, HardwareUse], ...]] = {}
    for row in _rows("hardware_use.csv"):
        belief = Triangular(
            low=strict_float(row["low"]),
            mode=strict_float(row["mode"]),
            high=strict_float(row["high"]),
        )
        use = HardwareUse(
            quantity=row["quantity"], belief=belief, unit=row["unit"], source=row["source"]
        )
        found[use.quantity] = (*found.get(use.quantity, ()), (row["pattern"], use))
    return found


def hardware_use(quantity: str, accelerator_key: str) -> HardwareUse:
    """The range of power_fraction, host_factor or pue for a catalogue key."""
    rows = _hardware_use()[quantity]
    return next(use for pattern, use in rows if re.search(pattern, accelerator_key))


def metered_power(accelerator_key: str) -> HardwareUse | None:
    """The metered system power of an accelerator whose maker publishes no TDP; None without."""
    rows = _hardware_use()["power_w"]
    return next((use for pattern, use in rows if re.search(pattern, accelerator_key)), None)


@cache
def best_observed(accelerator_key: str, precision: str) -> Throughput | None:
    """The highest throughput seen on an accelerator (of its generation) at a precision."""
    generation = generation_of(accelerator_key).key
    seen = [
        row
        for row in throughputs()
        if generation_of(row.accelerator_key).key == generation
        and (row.precision == precision or {row.precision, precision} <= set(SIXTEEN_BIT))
    ]
    own = [row for row in seen if row.accelerator_key == accelerator_key]
    return max(own or seen, key=lambda row: row.model_flop_per_s, default=None)
