"""The question of a kickoff estimate as people write it (JSON or form); ranges are formulae's."""

from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Final, Literal, Self

from django.utils.translation import gettext as _
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from formulae.beliefs import Belief, Certain, Triangular
from formulae.plan_lines import EVIDENCE_PRESETS
from planning.model_spec import ModelSpec
from planning.whole_bill_spec import (
    MoneySpec,
    OnPremisesSpec,
    RequestsSpec,
    ServiceSpec,
    StorageSpec,
    TransferSpec,
    WholeBillSpec,
)

_STRICT = ConfigDict(extra="forbid", frozen=True)
PRECISIONS: Final = ("bf16", "fp16", "fp8", "fp4", "tf32", "fp32")
# What the keys of the first specification are called now: a sender of old questions is told.
_RENAMED: Final = {
    "params": "model.params",
    "active_params": "model.active_params",
    "mfu": "step_mfu",
    "accelerators": "accelerator_count",
    "starts_on": "started_on",
    "price_per_accelerator_h": 'price_per_accelerator_hour: {"amount", "currency"}',
    "g_per_kwh": "grid_g_per_kwh",
    "provider": 'region, as "aws:us-east-1"',
    "country": 'region, as "SWE"',
}


def _without_nulls(given: Any) -> Any:
    """The same document without the keys that are null, however deep."""
    if isinstance(given, dict):
        return {key: _without_nulls(value) for key, value in given.items() if value is not None}
    if isinstance(given, list | tuple):
        return [_without_nulls(value) for value in given]
    return given


class Range(BaseModel):
    """A quantity that is not known to the point: lowest, most likely, highest."""

    model_config = _STRICT
    low: float
    mode: float
    high: float

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        """Lowest first."""
        if not self.low <= self.mode <= self.high:
            raise ValueError(_("write low <= mode <= high"))
        return self


Quantity = Annotated[float, Field(strict=True)] | Range


class Reliability(BaseModel):
    """How often nodes fail and what a failure costs; gives the goodput of failures."""

    model_config = _STRICT
    failures_per_node_day: float = Field(default=0.00379, gt=0, le=1)
    restart_s: float = Field(default=900.0, ge=0, le=86_400)
    checkpoint_write_s: float = Field(default=60.0, gt=0, le=86_400)
    checkpoint_interval_s: float | None = Field(default=None, gt=0, le=604_800)
    accelerators_per_node: int | None = Field(default=None, ge=1, le=1_024)


class LineSpec(BaseModel):
    """One line of the plan: a fraction of its base, or an amount."""

    model_config = _STRICT
    key: str = Field(pattern=r"^[a-z0-9_-]{1,40}$")
    name: str = Field(default="", max_length=120)
    fraction: Annotated[Decimal, Field(ge=0, le=10)] | None = None
    base: Literal["main_run", "subtotal"] = "main_run"
    amount: MoneySpec | None = None
    in_programme: bool = True

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        """A fraction or an amount; the main run is what the estimate says."""
        if (self.fraction is None) == (self.amount is None):
            raise ValueError(_("give fraction (0.2 is 20 %) or amount, one of them"))
        if self.key == "main_run" and self.fraction != 1:
            raise ValueError(_("the main run is 1.0x, what the estimate says: fraction 1"))
        return self


class EstimateRequest(BaseModel):
    """SPEC of `manage.py estimate` and of POST /api/v1/estimates; docs/cli.md documents it."""

    model_config = _STRICT

    name: str = Field(default="Main run", min_length=1, max_length=200)
    model: ModelSpec
    training_flop: float | None = Field(default=None, gt=0, le=1e35)
    tokens: float = Field(description="Training tokens.")
    seq_len: int | None = Field(default=None, ge=1, le=100_000_000)
    batch_sequences: float | None = Field(default=None, gt=0)
    precision: Literal["bf16", "fp16", "fp8", "fp4", "tf32", "fp32"] | None = None
    accelerator: str = Field(min_length=1, max_length=80)
    accelerator_count: int | None = None
    started_on: date | None = None
    peak: Literal["dense", "sparse"] = "dense"
    sparse_reason: str = Field(default="", max_length=500, validate_default=True)
    peak_flop_per_s: float | None = None
    step_mfu: Quantity | None = None
    goodput: Quantity | None = None
    reliability: Reliability | None = None
    price_per_accelerator_hour: MoneySpec | None = None
    currency: str | None = Field(
        default=None, pattern=r"^[A-Z]{3}$", description="Of the plan; else that of the price."
    )
    price_ratio: Quantity | None = None
    purchase: Literal["on_demand", "spot", "reserved_1y", "reserved_3y", "contract"] = "on_demand"
    power_w: Quantity | None = None
    host_factor: Quantity | None = None
    region: str = Field(default="", max_length=80)
    pue: Quantity | None = None
    grid_g_per_kwh: Quantity | None = None
    lines: str | tuple[LineSpec, ...] | None = None
    storage: tuple[StorageSpec, ...] = ()
    requests: tuple[RequestsSpec, ...] = ()
    transfer: tuple[TransferSpec, ...] = ()
    services: tuple[ServiceSpec, ...] = ()
    on_premises: OnPremisesSpec | None = None
    draws: int = Field(default=4_000, ge=100, le=1_000_000)
    seed: int = Field(default=1, ge=0)

    @model_validator(mode="before")
    @classmethod
    def _as_written(cls, given: Any) -> Any:
        """Null is the same as leaving a key out."""
        return _without_nulls(given)

    @field_validator("sparse_reason", mode="after")
    @classmethod
    def _reasoned(cls, reason: str, info: ValidationInfo) -> str:
        """A sparse peak says why."""
        if info.data.get("peak") == "sparse" and not reason.strip():
            raise ValueError(
                _("a sparse peak needs sparse_reason: 2:4 sparsity is rarely trained with")
            )
        return reason

    @field_validator("lines", mode="after")
    @classmethod
    def _known_lines(
        cls, lines: str | tuple[LineSpec, ...] | None
    ) -> str | tuple[LineSpec, ...] | None:
        """A preset that exists, or lines of which each key stands once."""
        known = [preset.key for preset in EVIDENCE_PRESETS]
        if isinstance(lines, str) and lines not in known:
            raise ValueError(
                _("no preset %(name)s; known: %(known)s")
                % {"name": lines, "known": ", ".join(known)}
            )
        if isinstance(lines, tuple) and len({line.key for line in lines}) != len(lines):
            raise ValueError(_("each key once"))
        return lines

    def whole_bill(self) -> WholeBillSpec:
        """The part of the question about what stands around the accelerators."""
        return WholeBillSpec(
            storage=self.storage,
            requests=self.requests,
            transfer=self.transfer,
            services=self.services,
            on_premises=self.on_premises,
        )

    def document(self) -> dict[str, Any]:
        """The question as it was asked, for keeping and sending."""
        return self.model_dump(mode="json", exclude_none=True, exclude_defaults=True)


class SpecError(ValueError):
    """A question that cannot be answered: `problems` maps a field to what is wrong with it."""

    def __init__(self, problems: dict[str, str]) -> None:
        super().__init__("; ".join(f"{field}: {why}" for field, why in problems.items()))
        self.problems = problems


def parse_request(document: dict[str, Any]) -> EstimateRequest:
    """Check the shape of a question.

    Raises:
        SpecError: names each wrong field and why.
    """
    old = {name: _("is now %(new)s") % {"new": new} for name, new in _RENAMED.items()}
    renamed = {name: why for name, why in old.items() if document.get(name) is not None}
    if renamed:
        raise SpecError(renamed)
    try:
        return EstimateRequest.model_validate(document)
    except ValidationError as error:
        problems: dict[str, str] = {}
        for found in error.errors():
            if _is_of_another_branch(found["loc"], found["input"]):
                continue
            where = [str(part) for part in found["loc"] if not _is_branch(part)]
            field = ".".join(where) or "spec"
            why = found["msg"].removeprefix("Value error, ")
            if found["type"] == "less_than_equal" and field.endswith("fraction"):
                why += ". " + _("Write a fraction: 0.8 is 80 %.")
            problems.setdefault(field, why)
        raise SpecError(problems) from error


def _is_branch(part: object) -> bool:
    """Whether a step of a path is a branch of a union, which tells a person nothing."""
    return isinstance(part, str) and (part in ("float", "str", "Range") or "[" in part)


def _is_of_another_branch(path: tuple[int | str, ...], given: object) -> bool:
    """Whether a union complains of what nobody meant: that a range is no number, say."""
    if not path or not _is_branch(path[-1]):
        return False
    return (path[-1] in ("float", "str")) is isinstance(given, dict | list | tuple)


def belief_of(quantity: Quantity) -> Belief:
    """A number is taken as certain, a range as triangular."""
    if isinstance(quantity, Range):
        return Triangular(low=quantity.low, mode=quantity.mode, high=quantity.high)
    return Certain(value=quantity)
