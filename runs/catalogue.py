"""The shipped catalogue of accelerators and instance types (runs/data); no tables."""

import csv
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from formulae.units import strict_float
from runs.records import PRECISIONS, AcceleratorSpec, InstanceTypeSpec

DATA: Final = Path(__file__).resolve().parent / "data"


def _rows(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


def _optional(text: str) -> float | None:
    return strict_float(text) if text else None


def _optional_count(text: str) -> int | None:
    return int(text) if text else None


def _peaks(row: Mapping[str, str], kind: str) -> Mapping[str, float]:
    """The published peaks of one kind (dense or sparse), by precision."""
    texts = {name: row.get(f"{name}_{kind}_flop_per_s") for name in PRECISIONS}
    return MappingProxyType({name: strict_float(text) for name, text in texts.items() if text})


def _accelerator(row: Mapping[str, str]) -> AcceleratorSpec:
    return AcceleratorSpec(
        key=row["key"],
        name=row["name"],
        vendor=row["vendor"],
        launch_year=_optional_count(row["launch_year"]),
        peak_dense_flop_per_s=_peaks(row, "dense"),
        peak_sparse_flop_per_s=_peaks(row, "sparse"),
        int8_dense_op_per_s=_optional(row["int8_dense_op_per_s"]),
        int8_sparse_op_per_s=_optional(row["int8_sparse_op_per_s"]),
        tdp_w=_optional(row["tdp_w"]),
        max_power_w=_optional(row["max_power_w"]),
        memory_gb=_optional(row["memory_gb"]),
        memory_type=row["memory_type"],
        memory_bandwidth_gb_per_s=_optional(row["memory_bandwidth_gb_per_s"]),
        accelerators_per_node=_optional_count(row["accelerators_per_node"]),
        interconnect=row["interconnect"],
        family=row["family"],
        form_factor=row["form_factor"],
        unit_note=row["unit_note"],
        note=row["note"],
        source=row["source"],
        source_date=row["source_date"],
    )


@cache
def shipped_accelerators() -> Mapping[str, AcceleratorSpec]:
    """The accelerators of runs/data/accelerators.csv by key."""
    specs = (_accelerator(row) for row in _rows("accelerators.csv"))
    return MappingProxyType({spec.key: spec for spec in specs})


@cache
def shipped_instance_types() -> Mapping[tuple[str, str], InstanceTypeSpec]:
    """The instance types of runs/data/instance_types.csv by provider and lower-case name."""
    specs = (
        InstanceTypeSpec(
            provider=row["provider"],
            name=row["name"],
            accelerator_key=row["accelerator_key"],
            accelerator_count=Decimal(row["accelerator_count"]),
            network_gbit_per_s=_optional(row["network_gbit_per_s"]),
            source=row["source"],
            source_date=row["source_date"],
        )
        for row in _rows("instance_types.csv")
    )
    return MappingProxyType({(spec.provider, spec.name.lower()): spec for spec in specs})


@cache
def accelerator_aliases() -> tuple[tuple[str, str, str], ...]:
    """(what people write, accelerator key, code of what the name alone does not say)."""
    return tuple(
        (row["alias"], row["key"], row["reason"]) for row in _rows("accelerator_aliases.csv")
    )


@cache
def accelerator_name_patterns() -> tuple[tuple[str, str], ...]:
    """(RE2 pattern, accelerator key) in order, first match wins, case does not matter."""
    return tuple((row["pattern"], row["key"]) for row in _rows("accelerator_names.csv"))


def accelerator_from_text(text: str) -> str | None:
    """The key of the accelerator that a SKU's, meter's or driver's text names; None when none is.

    >>> accelerator_from_text("NVIDIA H100 80GB HBM3"), accelerator_from_text("Standard storage")
    ('h100-sxm-80gb', None)
    """
    for pattern, key in accelerator_name_patterns():
        if re.search(pattern, text, re.IGNORECASE):
            return key
    return None


def accelerator_from_document(document: Mapping[str, Any]) -> AcceleratorSpec:
    """An organisation's own catalogue row, as its configuration writes it."""
    shipped = shipped_accelerators().get(document["key"])
    return AcceleratorSpec(
        key=document["key"],
        name=document.get("name") or document["key"],
        vendor=document.get("vendor", ""),
        launch_year=document.get("launch_year"),
        peak_dense_flop_per_s=_rates(document.get("peak_dense_flop_per_s")),
        peak_sparse_flop_per_s=_rates(document.get("peak_sparse_flop_per_s")),
        int8_dense_op_per_s=document.get("int8_dense_op_per_s"),
        int8_sparse_op_per_s=document.get("int8_sparse_op_per_s"),
        tdp_w=document.get("tdp_w"),
        max_power_w=document.get("max_power_w", document.get("tdp_w")),
        memory_gb=document.get("memory_gb"),
        memory_type=document.get("memory_type", ""),
        memory_bandwidth_gb_per_s=document.get("memory_bandwidth_gb_per_s"),
        accelerators_per_node=document.get("accelerators_per_node"),
        interconnect=document.get("interconnect", ""),
        family=shipped.family if shipped else "",
        form_factor=document.get("form_factor", ""),
        unit_note=document.get("unit_note", ""),
        note=document.get("note", ""),
        source=document["source"],
        source_date=document.get("source_date", ""),
    )


def _rates(peaks: Mapping[str, Any] | None) -> Mapping[str, float]:
    return MappingProxyType({name: float(rate) for name, rate in (peaks or {}).items()})


def instance_type_from_document(document: Mapping[str, Any]) -> InstanceTypeSpec:
    """An organisation's own instance type, as its configuration writes it."""
    return InstanceTypeSpec(
        provider=document["provider"],
        name=document["name"],
        accelerator_key=document["accelerator"],
        accelerator_count=Decimal(str(document["accelerator_count"])),
        network_gbit_per_s=document.get("network_gbit_per_s"),
        note=document.get("note", ""),
        source=document["source"],
        source_date=document.get("source_date", ""),
    )


def with_own_types(
    own: Iterable[InstanceTypeSpec],
) -> dict[tuple[str, str], InstanceTypeSpec]:
    """An organisation's own instance types, then the shipped ones that they do not override."""
    mine = {(spec.provider, spec.name.lower()): spec for spec in own}
    return mine | {key: spec for key, spec in shipped_instance_types().items() if key not in mine}


def with_own_rows(own: Iterable[AcceleratorSpec]) -> dict[str, AcceleratorSpec]:
    """The shipped accelerators, overridden and extended by an organisation's own rows."""
    return {**shipped_accelerators(), **{spec.key: spec for spec in own}}
