"""What the pages of the catalogue show, put together from its rows; nothing is written."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from django.utils.translation import gettext as _

from formulae.units import FLOP_PER_TFLOP
from runs.catalogue import accelerator_aliases, shipped_accelerators, shipped_instance_types
from runs.naming import plain_name
from runs.records import PRECISIONS, AcceleratorSpec, InstanceTypeSpec
from runs.selectors import (
    accelerator_named,
    accelerators,
    instance_types,
    own_accelerators,
    own_instance_types,
)

LISTED_DENSE = ("bf16", "fp16", "fp8", "fp4")
LISTED_SPARSE = ("bf16", "fp16", "fp8", "fp4")


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakRow:
    """Peaks of one precision in TFLOP/s (TOP/s for INT8); None where none is published."""

    precision: str
    unit: str
    dense: Decimal | None
    sparse: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorLine:
    """One accelerator in the list."""

    spec: AcceleratorSpec
    name: str
    dense_tflop_per_s: tuple[Decimal | None, ...]
    sparse_tflop_per_s: tuple[Decimal | None, ...]
    is_own: bool
    overrides: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeLine:
    """One instance type in a list; `entry_id` of an own one."""

    spec: InstanceTypeSpec
    accelerator: str
    memory_gb: Decimal | None
    count_digits: int
    entry_id: UUID | None
    overrides: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Where an own row says something else than the shipped one."""

    what: str
    own: str
    shipped: str


def tera(per_s: float | None) -> Decimal | None:
    """FLOP/s as TFLOP/s, exact as written.

    >>> tera(989.4e12), tera(None)
    (Decimal('989.4'), None)
    """
    return None if per_s is None else Decimal(repr(per_s)) / FLOP_PER_TFLOP


def accelerator_lines(
    organisation_id: UUID, *, text: str = "", vendor: str = ""
) -> list[AcceleratorLine]:
    """The rows that a text and a vendor leave: own ones, then the newest."""
    mine = {spec.key for spec in own_accelerators(organisation_id)}
    found = [
        spec
        for spec in accelerators(organisation_id)
        if (not vendor or spec.vendor == vendor) and _matches(spec, text)
    ]
    found.sort(key=lambda spec: (spec.key not in mine, -(spec.launch_year or 0), spec.name))
    return [_line(spec, is_own=spec.key in mine) for spec in found]


def _matches(spec: AcceleratorSpec, text: str) -> bool:
    said = f"{spec.key} {spec.name} {spec.vendor} {spec.family} {spec.form_factor}".casefold()
    return all(word in said for word in text.casefold().split())


def _line(spec: AcceleratorSpec, *, is_own: bool) -> AcceleratorLine:
    dense, sparse = spec.peak_dense_flop_per_s, spec.peak_sparse_flop_per_s
    return AcceleratorLine(
        spec=spec,
        name=plain_name(spec),
        dense_tflop_per_s=tuple(tera(dense.get(one)) for one in LISTED_DENSE),
        sparse_tflop_per_s=tuple(tera(sparse.get(one)) for one in LISTED_SPARSE),
        is_own=is_own,
        overrides=is_own and spec.key in shipped_accelerators(),
    )


def vendors(organisation_id: UUID) -> list[str]:
    """Everybody who makes an accelerator of the catalogue."""
    return sorted({spec.vendor for spec in accelerators(organisation_id) if spec.vendor})


def meaning_of(text: str, organisation_id: UUID) -> tuple[str, str] | None:
    """The key and the sentence for a text that names one row but is no part of its name."""
    try:
        found = accelerator_named(text, organisation_id)
    except LookupError:
        return None
    said = found.assumed or _("%(text)s is %(name)s") % {
        "text": text.strip(),
        "name": plain_name(found.spec),
    }
    return found.spec.key, said


def peak_rows(spec: AcceleratorSpec) -> list[PeakRow]:
    """The published peaks by precision."""
    dense, sparse = spec.peak_dense_flop_per_s, spec.peak_sparse_flop_per_s
    rows = [
        PeakRow(
            precision=one.upper(),
            unit="TFLOP/s",
            dense=tera(dense.get(one)),
            sparse=tera(sparse.get(one)),
        )
        for one in PRECISIONS
        if one in dense or one in sparse
    ]
    if spec.int8_dense_op_per_s is not None:
        rows.append(
            PeakRow(
                precision="INT8",
                unit="TOP/s",
                dense=tera(spec.int8_dense_op_per_s),
                sparse=tera(spec.int8_sparse_op_per_s),
            )
        )
    return rows


def type_lines(
    organisation_id: UUID, *, key: str = "", text: str = "", provider: str = ""
) -> list[TypeLine]:
    """Instance types, of one accelerator or provider or with a text in the name; own ones first."""
    specs = {spec.key: spec for spec in accelerators(organisation_id)}
    own = {
        (spec.provider, spec.name.lower()): entry_id
        for entry_id, spec in own_instance_types(organisation_id).items()
    }
    return [
        _type_line(spec, specs, own.get((spec.provider, spec.name.lower())))
        for spec in instance_types(organisation_id)
        if (not key or spec.accelerator_key == key)
        and (not provider or spec.provider == provider)
        and text.casefold().strip() in spec.name.casefold()
    ]


def _type_line(
    spec: InstanceTypeSpec, specs: Mapping[str, AcceleratorSpec], entry_id: UUID | None
) -> TypeLine:
    held = specs.get(spec.accelerator_key)
    memory_gb = None
    if held is not None and held.memory_gb is not None:
        memory_gb = spec.accelerator_count * Decimal(repr(held.memory_gb))
    is_shipped = (spec.provider, spec.name.lower()) in shipped_instance_types()
    return TypeLine(
        spec=spec,
        accelerator=plain_name(held) if held else spec.accelerator_key,
        memory_gb=memory_gb,
        count_digits=_decimals(spec.accelerator_count),
        entry_id=entry_id,
        overrides=entry_id is not None and is_shipped,
    )


def _decimals(value: Decimal) -> int:
    exponent = value.normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def providers(organisation_id: UUID) -> list[str]:
    """Everybody who rents an instance type of the catalogue."""
    return sorted({spec.provider for spec in instance_types(organisation_id)})


def other_names(key: str) -> list[str]:
    """What else people may write for a row."""
    return [alias for alias, of, _reason in accelerator_aliases() if of == key]


def differences(own: AcceleratorSpec) -> list[Difference]:
    """What an own row says otherwise than the shipped one of its key."""
    shipped = shipped_accelerators().get(own.key)
    if shipped is None:
        return []
    mine, theirs = dict(_figures(own)), dict(_figures(shipped))
    return [
        Difference(what=what, own=mine.get(what, "–"), shipped=theirs.get(what, "–"))
        for what in {**theirs, **mine}
        if mine.get(what) != theirs.get(what)
    ]


def _figures(spec: AcceleratorSpec) -> Iterable[tuple[str, str]]:
    """The figures of a row as (what it is with its unit, text)."""
    for row in peak_rows(spec):
        for kind, peak in ((_("dense"), row.dense), (_("sparse"), row.sparse)):
            if peak is not None:
                yield f"{row.precision} {kind} ({row.unit})", f"{peak.normalize():f}"
    plain = {
        _("TDP (W)"): spec.tdp_w,
        _("Highest plausible power (W)"): spec.max_power_w,
        _("Memory (GB)"): spec.memory_gb,
        _("Memory bandwidth (GB/s)"): spec.memory_bandwidth_gb_per_s,
        _("Accelerators per node"): spec.accelerators_per_node,
    }
    for what, value in plain.items():
        if value is not None:
            yield what, f"{value:g}"
