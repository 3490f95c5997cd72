"""What an own row of the catalogue must say, and which units people mistake; no tables."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Final

from django.utils.translation import gettext as _
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from formulae.units import FLOP_PER_TFLOP
from runs.records import PRECISIONS

# Words of addresses under /catalogue/.
RESERVED_KEYS: Final = frozenset({"new", "instance-types"})
# From a small card of 2010 to ten times the fastest that is announced.
LEAST_PEAK_FLOP_PER_S: Final = 1e11
MOST_PEAK_FLOP_PER_S: Final = 2e17
LEAST_BANDWIDTH_GB_PER_S: Final = 10
MOST_MEMORY_GB: Final = 5_000
LEAST_TDP_W: Final = 5


class RowError(ValueError):
    """A row that cannot be taken; `field` is its key in the document, dotted below the top."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field
        self.message = message


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True, allow_inf_nan=False)


def _source_date(value: object) -> object:
    """YAML reads a bare day as a date; text is wanted."""
    return value if value is None or isinstance(value, str) else str(value)


SourceDate = Annotated[
    str, BeforeValidator(_source_date), Field(pattern=r"^(\d{4}(-\d{2}(-\d{2})?)?)?$")
]
Source = Annotated[str, Field(min_length=1, max_length=400)]
Note = Annotated[str, Field(max_length=2_000)]
ShortText = Annotated[str, Field(max_length=200)]
Positive = Annotated[float, Field(gt=0)]


class AcceleratorRow(_Row):
    """An accelerator as the configuration, the API and the form give it."""

    key: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=80)
    name: ShortText = ""
    vendor: ShortText = ""
    form_factor: ShortText = ""
    launch_year: int | None = Field(default=None, ge=1990, le=2100)
    peak_dense_flop_per_s: dict[str, Positive] = {}
    peak_sparse_flop_per_s: dict[str, Positive] = {}
    int8_dense_op_per_s: Positive | None = None
    int8_sparse_op_per_s: Positive | None = None
    tdp_w: Positive | None = None
    max_power_w: Positive | None = None
    memory_gb: Positive | None = None
    memory_type: ShortText = ""
    memory_bandwidth_gb_per_s: Positive | None = None
    accelerators_per_node: int | None = Field(default=None, ge=1, le=1024)
    interconnect: ShortText = ""
    unit_note: ShortText = ""
    note: Note = ""
    source: Source
    source_date: SourceDate = ""

    @model_validator(mode="after")
    def _plausible(self) -> "AcceleratorRow":
        """Refuse what a wrong unit or a sparse peak in the dense place would make."""
        if self.key in RESERVED_KEYS:
            raise RowError("key", _("This key is an address of the catalogue: choose another one."))
        for kind in ("dense", "sparse"):
            peaks = getattr(self, f"peak_{kind}_flop_per_s")
            for precision, peak in peaks.items():
                _check_peak(f"peak_{kind}_flop_per_s.{precision}", precision, peak)
        _check_sparse(self)
        _check_units(self)
        return self


def _check_peak(field: str, precision: str, peak: float) -> None:
    if precision not in PRECISIONS:
        known = ", ".join(PRECISIONS)
        raise RowError(
            field, _("This precision is not known here; known are %(known)s.") % {"known": known}
        )
    if peak < LEAST_PEAK_FLOP_PER_S:
        raise RowError(
            field,
            _(
                "%(given)s FLOP/s is too little for an accelerator. If you mean %(given)s TFLOP/s, "
                "that is %(meant)s FLOP/s."
            )
            % {"given": f"{peak:g}", "meant": f"{peak * FLOP_PER_TFLOP:g}"},
        )
    if peak > MOST_PEAK_FLOP_PER_S:
        raise RowError(
            field,
            _(
                "%(given)s FLOP/s (%(tera)s TFLOP/s) is more than any accelerator does. Was a "
                "figure in FLOP/s or GFLOP/s written where TFLOP/s were asked?"
            )
            % {"given": f"{peak:g}", "tera": f"{peak / FLOP_PER_TFLOP:g}"},
        )


def _check_sparse(row: AcceleratorRow) -> None:
    """Dense and sparse apart: a sparse peak stands beside a lower dense one."""
    pairs = [
        (f"peak_sparse_flop_per_s.{precision}", row.peak_dense_flop_per_s.get(precision), sparse)
        for precision, sparse in row.peak_sparse_flop_per_s.items()
    ]
    if row.int8_sparse_op_per_s is not None:
        pairs.append(("int8_sparse_op_per_s", row.int8_dense_op_per_s, row.int8_sparse_op_per_s))
    for field, dense, sparse in pairs:
        if dense is None:
            raise RowError(
                field,
                _(
                    "A sparse peak needs the dense one beside it: with 2:4 sparsity the dense peak "
                    "is half."
                ),
            )
        if sparse <= dense:
            raise RowError(
                field,
                _(
                    "The sparse peak (%(sparse)s TFLOP/s) must be above the dense one (%(dense)s "
                    "TFLOP/s). Datasheets often print the sparse figure large: it is not the dense "
                    "one."
                )
                % {
                    "sparse": f"{sparse / FLOP_PER_TFLOP:g}",
                    "dense": f"{dense / FLOP_PER_TFLOP:g}",
                },
            )


def _check_units(row: AcceleratorRow) -> None:
    """Refuse kW given for W, TB/s for GB/s, MB for GB."""
    if row.tdp_w is not None and row.tdp_w < LEAST_TDP_W:
        raise RowError(
            "tdp_w",
            _("%(given)s W is too little: this is in W. %(given)s kW is %(meant)s W.")
            % {"given": f"{row.tdp_w:g}", "meant": f"{row.tdp_w * 1000:g}"},
        )
    bandwidth = row.memory_bandwidth_gb_per_s
    if bandwidth is not None and bandwidth < LEAST_BANDWIDTH_GB_PER_S:
        raise RowError(
            "memory_bandwidth_gb_per_s",
            _("%(given)s GB/s is too little: this is in GB/s. %(given)s TB/s is %(meant)s GB/s.")
            % {"given": f"{bandwidth:g}", "meant": f"{bandwidth * 1000:g}"},
        )
    if row.memory_gb is not None and row.memory_gb > MOST_MEMORY_GB:
        raise RowError(
            "memory_gb",
            _("%(given)s GB is too much: this is in GB. %(given)s MB is %(meant)s GB.")
            % {"given": f"{row.memory_gb:g}", "meant": f"{row.memory_gb / 1000:g}"},
        )


class InstanceTypeRow(_Row):
    """An instance type as the configuration, the API and the form give it."""

    provider: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=40)
    name: str = Field(pattern=r"^[^\s/][^/]*$", max_length=120)
    accelerator: str = Field(min_length=1, max_length=80)
    accelerator_count: Decimal = Field(gt=0, le=1024, max_digits=9, decimal_places=4)
    network_gbit_per_s: Positive | None = None
    note: Note = ""
    source: Source
    source_date: SourceDate = ""

    @field_validator("accelerator_count", mode="before")
    @classmethod
    def _exact(cls, value: object) -> object:
        """YAML reads 0.125 as a float: its text is meant."""
        return str(value) if isinstance(value, float) else value


def accelerator_row(document: Mapping[str, Any]) -> dict[str, Any]:
    """A checked accelerator document, without what is left at its default.

    Raises:
        RowError: a key is missing, unknown, malformed or implausible; it is named.
    """
    return _checked(AcceleratorRow, document)


def instance_type_row(document: Mapping[str, Any]) -> dict[str, Any]:
    """A checked instance type document, without what is left at its default.

    Raises:
        RowError: a key is missing, unknown, malformed or implausible; it is named.
    """
    row = _checked(InstanceTypeRow, document)
    exact = Decimal(row["accelerator_count"]).normalize()
    return {**row, "accelerator_count": format(exact, "f")}


def _checked(kind: type[_Row], document: Mapping[str, Any]) -> dict[str, Any]:
    try:
        row = kind.model_validate(dict(document))
    except ValidationError as error:
        first = error.errors()[0]
        refusal = first.get("ctx", {}).get("error")
        if isinstance(refusal, RowError):
            raise refusal from error
        field = ".".join(str(step) for step in first["loc"])
        given = re.sub(r"\s+", " ", repr(first.get("input")))[:120]
        message = first["msg"] if first["type"] == "missing" else f"{first['msg']} ({given})"
        raise RowError(field, message) from error
    return kind.model_dump(row, exclude_defaults=True, mode="json")
