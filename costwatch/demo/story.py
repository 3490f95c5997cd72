"""The facts of the synthetic demo: dates, fleets, rates, events. Nothing is generated here."""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Final

PROJECT_SLUG: Final = "demo-moe-10b"
PROJECT_NAME: Final = "Synthetic demo: MoE 10B-active"
PROJECT_DESCRIPTION: Final = (
    "Invented figures. A mixture-of-experts model, 64B parameters of which 10B are active, "
    "10T tokens on 256 H100; planned at 42 % MFU and 0.9 goodput, nine weeks in."
)
DEFAULT_SEED: Final = 2026

# --- the plan
TOTAL_PARAMETERS: Final = 64_000_000_000
ACTIVE_PARAMETERS: Final = 10_000_000_000
TRAINING_TOKENS: Final = 10_000_000_000_000
ACCELERATOR_COUNT: Final = 256
PLANNED_MFU: Final = 0.42
PLANNED_GOODPUT_FRACTION: Final = 0.9
H100_DENSE_BF16_FLOP_PER_S: Final = 989.4e12

# --- the calendar (UTC)
EXPERIMENTS_START: Final = datetime(2026, 8, 24, tzinfo=UTC)
MAIN_RUN_START: Final = datetime(2026, 9, 14, tzinfo=UTC)
SLOW_WEEK_START: Final = datetime(2026, 10, 5, tzinfo=UTC)
SLOW_WEEK_END: Final = datetime(2026, 10, 12, tzinfo=UTC)
PRICE_CHANGE_AT: Final = datetime(2026, 10, 19, tzinfo=UTC)
RESTART_START: Final = datetime(2026, 10, 27, 3, tzinfo=UTC)
RESTART_END: Final = datetime(2026, 10, 28, 9, tzinfo=UTC)
ROLLBACK_AT: Final = datetime(2026, 10, 15, 14, tzinfo=UTC)
ROLLBACK_TO: Final = datetime(2026, 10, 15, 8, tzinfo=UTC)
"""The loss explodes, and the run goes on from the checkpoint of that hour."""
METER_OUTAGE_START: Final = datetime(2026, 10, 3, 14, tzinfo=UTC)
METER_OUTAGE_END: Final = datetime(2026, 10, 3, 20, tzinfo=UTC)
BILLED_UNTIL: Final = datetime(2026, 11, 15, tzinfo=UTC)
"""Bills lag behind: the last charge ends here, a day before the last power sample."""
AS_OF: Final = datetime(2026, 11, 16, tzinfo=UTC)

# --- what the runs do: the main one falls short of the utilisation planned
MAIN_TOKENS_PER_STEP: Final = 2**22
MAIN_STEP_MFU: Final = 0.375
SLOW_STEP_MFU: Final = 0.262
EXPERIMENT_PARAMETERS: Final = 1_500_000_000
EXPERIMENT_TOKENS_PER_STEP: Final = 2**21
EXPERIMENT_TOKENS: Final = 6_500_000_000_000
EXPERIMENT_SWEEP_H: Final = 9

# --- the fleet
NODE_COUNT: Final = 32
EXPERIMENT_NODE_COUNT: Final = 16
GPUS_PER_NODE: Final = 8
FAILED_NODE: Final = 17
"""Drained during the restart: it is billed, reports no power, and is refunded in November."""
GPU_MODEL: Final = "NVIDIA H100 80GB HBM3"
EXPERIMENT_RUN: Final = "experiments"
MAIN_RUN: Final = "main"

# --- the site
SITE_SLUG: Final = "demo-us-west"
SITE_NAME: Final = "Demo us-west-2 (synthetic)"
REGION: Final = "us-west-2"
HOST_FACTOR: Final = 1.5
PUE: Final = 1.15
PUE_SOURCE: Final = "AWS fleet 2023, published"

# --- accounts, all visibly invented
BILLING_ACCOUNT: Final = "000000000000-demo"
TRAIN_ACCOUNT: Final = "000000000001-demo-train"
DATA_ACCOUNT: Final = "000000000002-demo-data"
SHARED_ACCOUNT: Final = "000000000009-demo-shared"
"""Belongs to no project: its charges stay unallocated."""
GCP_ACCOUNT: Final = "demo-eval-000000"
PROJECT_TAG: Final = "project"
STAGE_TAG: Final = "stage"
AWS_SOURCE: Final = "demo-aws"
GCP_SOURCE: Final = "demo-gcp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A price per unit: what the list says and what the contract says."""

    listed: Decimal
    contracted: Decimal


P5_RATE: Final = Rate(listed=Decimal("55.04"), contracted=Decimal("24.80"))
P5_RATE_AFTER_CHANGE: Final = Rate(listed=Decimal("55.04"), contracted=Decimal("26.80"))
"""Per instance hour of eight H100: 3.10 and then 3.35 USD per GPU-hour."""
GPU_RATE_AT_PLAN: Final = Decimal("3.10")


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoUser:
    """A person of the demo, and the role that shows what such a person sees."""

    username: str
    name: str
    organisation_role: str
    project_role: str | None


DEMO_PASSWORD: Final = "demo-costwatch"  # noqa: S105 - printed on purpose, for invented data
DEMO_USERS: Final = (
    DemoUser(
        username="demo", name="Demo Administrator", organisation_role="admin", project_role=None
    ),
    DemoUser(
        username="demo-owner",
        name="Demo Owner",
        organisation_role="member",
        project_role="owner",
    ),
    DemoUser(
        username="demo-viewer",
        name="Demo Viewer",
        organisation_role="member",
        project_role="viewer",
    ),
)


def node_name(node: int) -> str:
    """The host name of a node, counted from 1."""
    return f"demo-node-{node:02d}"


def device_uuid(node: int, gpu: int) -> str:
    """The NVML-like id of a GPU: node from 1, GPU from 0."""
    return f"GPU-demo0000-0000-0000-{node:04d}-{gpu:012d}"


def p5_rate_at(instant: datetime) -> Rate:
    """The price of one p5.48xlarge hour that starts at `instant`."""
    return P5_RATE if instant < PRICE_CHANGE_AT else P5_RATE_AFTER_CHANGE


def is_slow(instant: datetime) -> bool:
    """Whether the input pipeline starves the GPUs at `instant`."""
    return SLOW_WEEK_START <= instant < SLOW_WEEK_END


def is_restarting(instant: datetime) -> bool:
    """Whether the fleet waits for a node and a checkpoint at `instant`."""
    return RESTART_START <= instant < RESTART_END


def first_of_next_month(day: date) -> date:
    """The first day of the month after `day`'s."""
    return date(day.year + day.month // 12, day.month % 12 + 1, 1)
