"""The embodied carbon of an accelerator-hour from published footprints; pure, no tables."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any, Final

from carbon.factors import DATA
from formulae.embodied import Ranged, embodied_range_kg_per_accelerator_h
from formulae.units import strict_float

CLASS_PREFIX: Final = "class estimate from "
NO_TABLE_SUFFIX: Final = "; this accelerator is in no table"
PUBLISHED: Final = "published footprint"
COMPUTED: Final = "computed from a published footprint or from its parts"
_ANY: Final = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbodiedPart:
    """The footprint of one thing, an accelerator or a server without its accelerators."""

    key: str
    name: str
    kg: Ranged
    boundary: str
    year: int
    source: str
    reference: str
    basis: str

    def as_json(self) -> dict[str, Any]:
        """The object that reports and commands print."""
        return {
            "key": self.key,
            "name": self.name,
            "kg": self.kg.value,
            "kg_low": self.kg.low,
            "kg_high": self.kg.high,
            "boundary": self.boundary,
            "year": self.year,
            "source": self.source,
            "reference": self.reference,
            "basis": self.basis,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """A figure that nobody meters before the fact, with its range and source."""

    value: Ranged
    unit: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbodiedFactor:
    """Embodied carbon of one accelerator-hour; `level` says whose footprint it is."""

    accelerator_key: str
    kg_per_accelerator_h: float
    low: float
    high: float
    unit: str
    level: str
    year: int
    source: str
    accelerator: EmbodiedPart
    server: EmbodiedPart
    accelerators_per_server: float
    lifetime_h: float
    utilisation_fraction: float
    lifetime: Assumption
    utilisation: Assumption

    def as_json(self) -> dict[str, Any]:
        """The object that reports and commands print."""
        return {
            "kind": "embodied",
            "value": self.kg_per_accelerator_h,
            "low": self.low,
            "high": self.high,
            "unit": self.unit,
            "level": self.level,
            "year": self.year,
            "source": self.source,
            "accelerator": self.accelerator.as_json(),
            "server": self.server.as_json(),
            "accelerators_per_server": self.accelerators_per_server,
            "lifetime_h": self.lifetime_h,
            "lifetime_source": self.lifetime.source,
            "utilisation_fraction": self.utilisation_fraction,
            "utilisation_source": self.utilisation.source,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Class:
    """Which footprints an accelerator takes, and bounds of its own where it has some."""

    accelerator_item: str
    server_item: str
    accelerators_per_server: float
    level: str
    kg_low: float | None
    kg_high: float | None


def _rows(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


@cache
def embodied_parts() -> Mapping[str, EmbodiedPart]:
    """The footprints of carbon/data/embodied.csv by key."""
    return MappingProxyType(
        {
            row["key"]: EmbodiedPart(
                key=row["key"],
                name=row["name"],
                kg=Ranged(
                    low=strict_float(row["kg_low"]),
                    value=strict_float(row["kg"]),
                    high=strict_float(row["kg_high"]),
                ),
                boundary=row["boundary"],
                year=int(row["year"]),
                source=row["source"],
                reference=row["reference"],
                basis=row["basis"],
            )
            for row in _rows("embodied.csv")
        }
    )


@cache
def life_assumptions() -> Mapping[str, Assumption]:
    """Default life (`lifetime_h`) and share of it in use (`utilisation_fraction`)."""
    return MappingProxyType(
        {
            row["name"]: Assumption(
                value=Ranged(
                    low=strict_float(row["low"]),
                    value=strict_float(row["value"]),
                    high=strict_float(row["high"]),
                ),
                unit=row["unit"],
                source=row["source"],
            )
            for row in _rows("embodied_life.csv")
        }
    )


@cache
def _classes() -> Mapping[str, _Class]:
    def bound(text: str) -> float | None:
        return strict_float(text) if text else None

    return MappingProxyType(
        {
            row["accelerator_key"]: _Class(
                accelerator_item=row["accelerator_item"],
                server_item=row["server_item"],
                accelerators_per_server=strict_float(row["accelerators_per_server"]),
                level=row["level"],
                kg_low=bound(row["accelerator_kg_low"]),
                kg_high=bound(row["accelerator_kg_high"]),
            )
            for row in _rows("embodied_classes.csv")
        }
    )


def _widened(part: EmbodiedPart, low: float | None, high: float | None) -> EmbodiedPart:
    kg = Ranged(
        low=part.kg.low if low is None else low,
        value=part.kg.value,
        high=part.kg.high if high is None else high,
    )
    return replace(part, kg=kg)


def _level(found: _Class, part: EmbodiedPart, *, is_known: bool) -> str:
    if not is_known:
        return f"{CLASS_PREFIX}{part.name}{NO_TABLE_SUFFIX}"
    named = {"published": PUBLISHED, "computed": COMPUTED}
    return named.get(found.level, f"{CLASS_PREFIX}{part.name}")


@lru_cache(maxsize=1024)
def embodied_factor(accelerator_key: str) -> EmbodiedFactor | None:
    """Embodied carbon of an hour of this accelerator with its share of the server; None without a
    key.

    An accelerator that nobody has published a footprint of takes that of a near relative, with a
    wide range, and `level` names the relative.
    """
    if not accelerator_key:
        return None
    known = _classes().get(accelerator_key)
    found = known or _classes()[_ANY]
    accelerator = _widened(embodied_parts()[found.accelerator_item], found.kg_low, found.kg_high)
    server = embodied_parts()[found.server_item]
    life, use = life_assumptions()["lifetime_h"], life_assumptions()["utilisation_fraction"]
    rate = embodied_range_kg_per_accelerator_h(
        server_kg=server.kg,
        accelerators_per_server=found.accelerators_per_server,
        accelerator_kg=accelerator.kg,
        lifetime_h=life.value,
        utilisation_fraction=use.value,
    )
    return EmbodiedFactor(
        accelerator_key=accelerator_key,
        kg_per_accelerator_h=rate.value,
        low=rate.low,
        high=rate.high,
        unit="kgCO2e/accelerator-hour",
        level=_level(found, accelerator, is_known=known is not None),
        year=accelerator.year,
        source=f"{accelerator.source}; server: {server.source}",
        accelerator=accelerator,
        server=server,
        accelerators_per_server=found.accelerators_per_server,
        lifetime_h=life.value.value,
        utilisation_fraction=use.value.value,
        lifetime=life,
        utilisation=use,
    )
