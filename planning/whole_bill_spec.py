"""What a plan says of the bill around the accelerators, as people write it; no price is known here.

Quantities of requests and transfer are totals over the project; storage is kept for its months.
"""

from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from formulae.money import Money
from formulae.storage import BYTES_PER_MEGABYTE, requests_for
from formulae.transfer import traffic_terabytes
from formulae.units import BYTES_PER_TB, EXACT

_STRICT = ConfigDict(extra="forbid", frozen=True)

Amount = Annotated[Decimal, Field(ge=0, le=10**15, max_digits=38, decimal_places=18)]
Terabytes = Annotated[Decimal, Field(ge=0, le=10**8)]
Megabytes = Annotated[Decimal, Field(ge=Decimal("0.000001"), le=10**8)]
Months = Annotated[Decimal, Field(ge=0, le=1_200)]
Count = Annotated[int, Field(ge=0, le=10**18)]
Epochs = Annotated[int, Field(ge=1, le=10_000)]
Fraction = Annotated[Decimal, Field(ge=0, le=1)]

DEFAULT_SHARD_MEGABYTES = Decimal(250)


class MoneySpec(BaseModel):
    """An amount with its currency: {"amount": "23.00", "currency": "USD"}."""

    model_config = _STRICT
    amount: Amount
    currency: str = Field(pattern=r"^[A-Z]{3}$")

    def money(self) -> Money:
        """The same, exact."""
        return Money(amount=self.amount, currency=self.currency)


class StorageSpec(BaseModel):
    """TB in one tier; the months of the project where none are given, the book's price likewise."""

    model_config = _STRICT
    tier: Literal["hot", "warm", "cold"]
    terabytes: Terabytes
    months: Months | None = None
    price_per_tb_month: MoneySpec | None = None


class RequestsSpec(BaseModel):
    """Requests of one verb: counted, or a dataset, the mean size of its objects, and epochs."""

    model_config = _STRICT
    verb: Literal["get", "put"]
    count: Count | None = None
    dataset_terabytes: Terabytes | None = None
    object_megabytes: Megabytes | None = None
    epochs: Epochs | None = None
    shard_megabytes: Megabytes = DEFAULT_SHARD_MEGABYTES
    price_per_1000: MoneySpec | None = None

    @model_validator(mode="after")
    def _one_way_to_count(self) -> Self:
        """Either the count, or what it follows from."""
        parts = (self.dataset_terabytes, self.object_megabytes)
        if self.count is not None and any(part is not None for part in (*parts, self.epochs)):
            raise ValueError(
                "give count, or dataset_terabytes with object_megabytes and epochs; not both"
            )
        if self.count is None and any(part is None for part in parts):
            raise ValueError("give count, or dataset_terabytes with object_megabytes")
        return self

    @property
    def dataset_bytes(self) -> int | None:
        """The dataset, or None where only a count was given."""
        if self.dataset_terabytes is None:
            return None
        return int(EXACT.multiply(self.dataset_terabytes, Decimal(BYTES_PER_TB)))

    @property
    def object_bytes(self) -> int | None:
        """Mean size of an object, or None where only a count was given."""
        return None if self.object_megabytes is None else _bytes_of(self.object_megabytes)

    @property
    def shard_bytes(self) -> int:
        """Size of the shards to compare with."""
        return _bytes_of(self.shard_megabytes)

    @property
    def requests(self) -> int:
        """How many requests over the whole project."""
        if self.dataset_bytes is None or self.object_bytes is None:
            return self.count or 0
        return requests_for(self.dataset_bytes, self.object_bytes, self.epochs or 1)


class TransferSpec(BaseModel):
    """Data moved: in all, or a dataset that every epoch reads but for what a cache keeps."""

    model_config = _STRICT
    kind: Literal["egress", "inter_region", "nat"]
    terabytes: Terabytes | None = None
    dataset_terabytes: Terabytes | None = None
    epochs: Epochs | None = None
    cached_fraction: Fraction | None = None
    price_per_gb: MoneySpec | None = None

    @model_validator(mode="after")
    def _one_way_to_measure(self) -> Self:
        """Either the total, or what it follows from."""
        parts = (self.dataset_terabytes, self.epochs, self.cached_fraction)
        if (self.terabytes is None) == (self.dataset_terabytes is None):
            raise ValueError("give terabytes, or dataset_terabytes with epochs; one of them")
        if self.terabytes is not None and any(part is not None for part in parts):
            raise ValueError("epochs and cached_fraction belong to dataset_terabytes")
        return self

    @property
    def moved_terabytes(self) -> Decimal:
        """TB over the whole project."""
        if self.dataset_terabytes is None:
            return self.terabytes or Decimal(0)
        return traffic_terabytes(
            self.dataset_terabytes,
            epochs=self.epochs or 1,
            cached_fraction=self.cached_fraction or Decimal(0),
        )


class ServiceSpec(BaseModel):
    """Logging or support: so much a month, a share of compute, GB of logs, or the book's month."""

    model_config = _STRICT
    kind: Literal["logging", "support"]
    name: str = Field(default="", max_length=200)
    per_month: MoneySpec | None = None
    fraction_of_compute: Fraction | None = None
    gigabytes_per_month: Annotated[Decimal, Field(ge=0, le=10**11)] | None = None

    @model_validator(mode="after")
    def _one_way_to_price(self) -> Self:
        """At most one of the three, and gigabytes only of logs."""
        ways = (self.per_month, self.fraction_of_compute, self.gigabytes_per_month)
        if sum(way is not None for way in ways) > 1:
            raise ValueError("give per_month, fraction_of_compute or gigabytes_per_month; only one")
        if self.gigabytes_per_month is not None and self.kind != "logging":
            raise ValueError("gigabytes_per_month belongs to logging")
        return self


class OnPremisesSpec(BaseModel):
    """Own hardware: what an accelerator cost and what an hour of it takes."""

    model_config = _STRICT
    capital_per_accelerator: MoneySpec
    life_years: Decimal = Field(gt=0, le=50)
    residual_fraction: Fraction = Decimal(0)
    utilisation_fraction: Decimal = Field(gt=0, le=1)
    electricity_per_kwh: MoneySpec | None = None
    staff_per_accelerator_h: MoneySpec | None = None


class WholeBillSpec(BaseModel):
    """The optional keys of a SPEC that are about the rest of the bill; null is the same as none."""

    model_config = _STRICT
    storage: tuple[StorageSpec, ...] | None = Field(default=None, max_length=50)
    requests: tuple[RequestsSpec, ...] | None = Field(default=None, max_length=50)
    transfer: tuple[TransferSpec, ...] | None = Field(default=None, max_length=50)
    services: tuple[ServiceSpec, ...] | None = Field(default=None, max_length=50)
    on_premises: OnPremisesSpec | None = None


WHOLE_BILL_KEYS = tuple(WholeBillSpec.model_fields)


class WholeBillError(ValueError):
    """A bill that cannot be drawn up: `problems` maps a field's path to what is wrong with it."""

    def __init__(self, problems: dict[str, str]) -> None:
        super().__init__("; ".join(f"{field}: {why}" for field, why in problems.items()))
        self.problems = problems


def _bytes_of(megabytes: Decimal) -> int:
    """Whole bytes, at least one."""
    return max(1, int(EXACT.multiply(megabytes, Decimal(BYTES_PER_MEGABYTE))))
