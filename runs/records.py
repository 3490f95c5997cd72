"""What other rooms may hold of what ran where: plain records, no Django."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from uuid import UUID

PRECISIONS = ("fp32", "tf32", "bf16", "fp16", "fp8", "fp4")


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorSpec:
    """One accelerator: peaks by precision, dense and sparse apart; unpublished ones absent.

    `unit_note` says what one of them is (a chip, a module, a die); `accelerators_per_node` is how
    many a usual server holds, which tells how many accelerators a failing node takes down.
    """

    key: str
    name: str
    vendor: str
    launch_year: int | None
    peak_dense_flop_per_s: Mapping[str, float]
    peak_sparse_flop_per_s: Mapping[str, float] = field(default_factory=dict)
    int8_dense_op_per_s: float | None = None
    int8_sparse_op_per_s: float | None = None
    tdp_w: float | None = None
    max_power_w: float | None = None
    memory_gb: float | None = None
    memory_type: str = ""
    memory_bandwidth_gb_per_s: float | None = None
    accelerators_per_node: int | None = None
    interconnect: str = ""
    family: str = ""
    form_factor: str = ""
    unit_note: str = ""
    note: str = ""
    source: str
    source_date: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedAccelerator:
    """What a name was read as; `assumed` says what the name alone did not say, for people.

    `instance_type` is the machine when the name was that of a machine.
    """

    spec: AcceleratorSpec
    assumed: str | None = None
    instance_type: "InstanceTypeSpec | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceTypeSpec:
    """A provider's machine and the accelerators in it; a slice of a card counts as its fraction."""

    provider: str
    name: str
    accelerator_key: str
    accelerator_count: Decimal
    network_gbit_per_s: float | None = None
    note: str = ""
    source: str
    source_date: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteRecord:
    """A place with accelerators; `country` is ISO 3166-1 alpha-3, `state` as in US-VA."""

    site_id: UUID
    organisation_id: UUID
    slug: str
    name: str
    provider: str = ""
    region: str = ""
    country: str = ""
    state: str = ""
    time_zone: str = "UTC"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRecord:
    """One accelerator; `power_limit_w` is its own limit, else its catalogue row's."""

    device_id: int
    device_uuid: str
    site_id: UUID
    node: str
    model: str
    accelerator_key: str
    power_limit_w: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentRecord:
    """A device worked for a project in [start, end); end is None while it still does."""

    device_id: int
    device_uuid: str
    site_id: UUID
    project_id: UUID
    run_id: UUID | None
    start: datetime
    end: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One training run.

    The FLOP of a token are `flop_per_token` where it is told, else six times `parameters_active`.
    `plan_line_key` is the line of the plan that the run works off, opaque here.
    """

    run_id: UUID
    project_id: UUID
    slug: str
    name: str
    accelerator_key: str
    accelerator_count: int
    precision: str
    start: datetime | None
    end: datetime | None
    parameters_active: float | None = None
    flop_per_token: float | None = None
    tokens_planned: int | None = None
    tokens_per_step: int | None = None
    plan_line_key: str = ""
    git_commit: str = ""
    external_url: str = ""
