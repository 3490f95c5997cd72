"""The charges of the demo project, month by month: what was used, by whom, at which price."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Final

from costwatch.demo import skus, story
from costwatch.demo.focus import Amount, BillFile, Owner, Period, Series, Sku, write_bills
from costwatch.demo.ledger import ChargeLedger
from costwatch.demo.noise import uniform
from costwatch.demo.story import Rate

HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
PROJECT_DAYS: Final = (story.BILLED_UNTIL - story.EXPERIMENTS_START).days
_STREAMS: Final = {"get": 11, "put": 12, "egress": 13, "copies": 14, "nat": 15, "logs": 16}


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyUse:
    """An article used day by day by one owner; `quantities[0]` is the first day of experiments."""

    sku: Sku
    owner: Owner
    rate: Rate
    quantities: list[Decimal | None]


def _tags(stage: str) -> dict[str, str]:
    return {
        story.PROJECT_TAG: story.PROJECT_SLUG,
        story.STAGE_TAG: stage,
        "environment": "synthetic-demo",
    }


def _owner(resource: str, resource_type: str, *, stage: str, account: str) -> Owner:
    return Owner(
        sub_account=account,
        project=story.PROJECT_SLUG,
        resource=resource,
        resource_type=resource_type,
        tags=_tags(stage),
    )


def _hourly(start: datetime, end: datetime) -> dict[tuple[date, Rate], list[Period]]:
    """The hours of [start, end) by billing month and p5 price."""
    groups: defaultdict[tuple[date, Rate], list[Period]] = defaultdict(list)
    while start < end:
        key = (start.date().replace(day=1), story.p5_rate_at(start))
        groups[key].append(Period(start=start, end=start + HOUR))
        start += HOUR
    return groups


def _p5_nodes() -> Iterator[Series]:
    """Hourly rows of every training node: experiments on some, then the main run on all."""
    phases = (
        (
            "experiments",
            story.EXPERIMENTS_START,
            story.MAIN_RUN_START,
            story.EXPERIMENT_NODE_COUNT,
        ),
        ("main-run", story.MAIN_RUN_START, story.BILLED_UNTIL, story.NODE_COUNT),
    )
    one_hour = Decimal(1)
    for stage, start, end, nodes in phases:
        groups = _hourly(start, end)
        for node in range(1, nodes + 1):
            owner = _owner(
                f"arn:aws:ec2:us-west-2:{story.TRAIN_ACCOUNT}:instance/i-{story.node_name(node)}",
                "Instance",
                stage=stage,
                account=story.TRAIN_ACCOUNT,
            )
            for (month, rate), periods in groups.items():
                yield Series(
                    sku=skus.P5,
                    owner=owner,
                    amount=Amount(quantity=one_hour, rate=rate),
                    periods=periods,
                    billing_month=month,
                )


def _preprocessing() -> Iterator[Series]:
    """CPU nodes that filter and tokenise before the main run: one row a node and day."""
    for node in range(1, 17):
        owner = _owner(
            f"arn:aws:ec2:us-west-2:{story.DATA_ACCOUNT}:instance/i-demo-cpu-{node:02d}",
            "Instance",
            stage="preprocessing",
            account=story.DATA_ACCOUNT,
        )
        yield from _daily(
            DailyUse(
                sku=skus.CPU_NODE,
                owner=owner,
                rate=skus.CPU_NODE_RATE,
                quantities=[Decimal(24) if day < 21 else None for day in range(PROJECT_DAYS)],
            )
        )


def _daily(use: DailyUse) -> Iterator[Series]:
    """One row a day that has a quantity."""
    for index, quantity in enumerate(use.quantities):
        if quantity is None:
            continue
        start = story.EXPERIMENTS_START + index * DAY
        yield Series(
            sku=use.sku,
            owner=use.owner,
            amount=Amount(quantity=quantity, rate=use.rate),
            periods=[Period(start=start, end=start + DAY)],
            billing_month=start.date().replace(day=1),
        )


def _gb_months(terabytes_by_day: list[int]) -> list[Decimal | None]:
    """Stored terabytes as GB-months of one day each, to six decimals."""
    months: list[Decimal | None] = []
    for index, terabytes in enumerate(terabytes_by_day):
        day = (story.EXPERIMENTS_START + index * DAY).date()
        days_in_month = (story.first_of_next_month(day) - day.replace(day=1)).days
        months.append((Decimal(terabytes * 1000) / days_in_month).quantize(Decimal("0.000001")))
    return months


def _storage() -> Iterator[Series]:
    """Hot (Lustre, gp3), warm (S3 Standard), cold (Deep Archive), and an untagged bucket."""
    days = range(PROJECT_DAYS)
    bucket = "arn:aws:s3:::demo-moe-10b-dataset"
    data = _owner(bucket, "Bucket", stage="data", account=story.DATA_ACCOUNT)
    archive = _owner(f"{bucket}-archive", "Bucket", stage="data", account=story.DATA_ACCOUNT)
    lustre = _owner(
        "arn:aws:fsx:us-west-2:demo:file-system/fs-demo-hot",
        "File System",
        stage="main-run",
        account=story.TRAIN_ACCOUNT,
    )
    untagged = Owner(
        sub_account=story.DATA_ACCOUNT,
        project=None,
        resource="arn:aws:s3:::demo-scratch-untagged",
        resource_type="Bucket",
    )
    node_disks_tb = [8 if day < 21 else 16 for day in days]
    for sku, owner, rate, terabytes in (
        (skus.LUSTRE, lustre, skus.LUSTRE_RATE, [100 if day < 21 else 200 for day in days]),
        (skus.EBS, lustre, skus.EBS_RATE, node_disks_tb),
        (skus.S3_STANDARD, data, skus.S3_STANDARD_RATE, [min(600 + 36 * d, 1350) for d in days]),
        (skus.S3_ARCHIVE, archive, skus.S3_ARCHIVE_RATE, [1700 + 5 * day for day in days]),
        (skus.S3_STANDARD, untagged, skus.S3_STANDARD_RATE, [30 for _ in days]),
    ):
        yield from _daily(
            DailyUse(sku=sku, owner=owner, rate=rate, quantities=_gb_months(terabytes))
        )


def _wobbling(name: str, seed: int, levels: list[int]) -> list[Decimal | None]:
    """Whole quantities around a level for each day, plus or minus 12 %."""
    dice = uniform(seed=seed, stream=_STREAMS[name], count=len(levels))
    return [
        Decimal(round(level * (0.88 + 0.24 * die)))
        for level, die in zip(levels, dice.tolist(), strict=True)
    ]


def _levels(before: int, during: int, slow: int | None = None) -> list[int]:
    """A daily level before the main run, during it, and in the slow week."""
    levels = []
    for index in range(PROJECT_DAYS):
        instant = story.EXPERIMENTS_START + index * DAY
        if slow is not None and story.is_slow(instant):
            levels.append(slow)
        else:
            levels.append(before if instant < story.MAIN_RUN_START else during)
    return levels


def _data_movement(seed: int) -> Iterator[Series]:
    """Requests, egress, copies, NAT and logs; in the slow week small files multiply the GETs."""
    bucket = _owner(
        "arn:aws:s3:::demo-moe-10b-dataset",
        "Bucket",
        stage="data",
        account=story.DATA_ACCOUNT,
    )
    network = _owner(
        "arn:aws:ec2:us-west-2:demo:natgateway/nat-demo",
        "NAT Gateway",
        stage="main-run",
        account=story.TRAIN_ACCOUNT,
    )
    for name, sku, owner, rate, levels in (
        (
            "get",
            skus.S3_GET,
            bucket,
            skus.S3_GET_RATE,
            _levels(60_000_000, 45_000_000, 1_400_000_000),
        ),
        ("put", skus.S3_PUT, bucket, skus.S3_PUT_RATE, _levels(9_000_000, 2_500_000)),
        ("egress", skus.EGRESS, network, skus.EGRESS_RATE, _levels(250, 900)),
        ("copies", skus.INTER_REGION, network, skus.INTER_REGION_RATE, _levels(400, 3_200)),
        ("nat", skus.NAT, network, skus.NAT_RATE, _levels(900, 1_500, 6_000)),
        ("logs", skus.LOGS, network, skus.LOGS_RATE, _levels(40, 110)),
    ):
        yield from _daily(
            DailyUse(sku=sku, owner=owner, rate=rate, quantities=_wobbling(name, seed, levels))
        )


def _shared_services() -> Iterator[Series]:
    """An account of another team, outside every project: what stays unallocated."""
    for node in range(1, 5):
        owner = Owner(
            sub_account=story.SHARED_ACCOUNT,
            project=None,
            resource=f"arn:aws:ec2:us-west-2:{story.SHARED_ACCOUNT}:instance/i-demo-ci-{node}",
            resource_type="Instance",
            tags={"team": "shared-services", "environment": "synthetic-demo"},
        )
        yield from _daily(
            DailyUse(
                sku=skus.SHARED_NODE,
                owner=owner,
                rate=skus.SHARED_NODE_RATE,
                quantities=[Decimal(24)] * PROJECT_DAYS,
            )
        )


def _evaluation() -> Iterator[Series]:
    """Nightly evaluation on 16 rented H100 of a second provider, from the second day of the run."""
    first = (story.MAIN_RUN_START - story.EXPERIMENTS_START).days + 1
    owner = _owner(
        "//compute.googleapis.com/projects/demo-eval-000000/instances/demo-eval",
        "Instance",
        stage="evaluation",
        account=story.GCP_ACCOUNT,
    )
    for sku, rate, quantity in (
        (skus.GCP_GPU, skus.GCP_GPU_RATE, 160),
        (skus.GCP_CORE, skus.GCP_CORE_RATE, 4_160),
        (skus.GCP_EGRESS, skus.GCP_EGRESS_RATE, 120),
    ):
        quantities = [Decimal(quantity) if day >= first else None for day in range(PROJECT_DAYS)]
        yield from _daily(DailyUse(sku=sku, owner=owner, rate=rate, quantities=quantities))


def _once(sku: Sku, amount: Amount, owner: Owner, period: Period) -> Series:
    """A single row billed in the month before the period's end."""
    month = (period.end - HOUR).date().replace(day=1)
    return Series(sku=sku, owner=owner, amount=amount, periods=[period], billing_month=month)


def _month_end_charges(usage_by_month: dict[date, Decimal]) -> Iterator[Series]:
    """Support and its tax for every closed month, and two promotional credits."""
    owner = Owner(sub_account=story.TRAIN_ACCOUNT, project=story.PROJECT_SLUG)
    for month, usage in sorted(usage_by_month.items()):
        end = datetime.combine(story.first_of_next_month(month), datetime.min.time(), UTC)
        if end > story.BILLED_UNTIL:
            continue
        last_day = Period(start=end - DAY, end=end)
        support = (usage * Decimal("0.03")).quantize(Decimal("0.01"))
        tax = (support * Decimal("0.088")).quantize(Decimal("0.01"))
        one_month = Amount(
            quantity=Decimal(1),
            rate=Rate(listed=support, contracted=support),
            frequency="Recurring",
        )
        yield _once(skus.SUPPORT, one_month, owner, last_day)
        yield _once(skus.TAX, _flat_amount(tax, "Tax"), owner, last_day)
        if month >= story.MAIN_RUN_START.date().replace(day=1):
            credit = _flat_amount(Decimal("-15000.00"), "Credit")
            yield _once(skus.CREDIT, credit, owner, last_day)


def _flat_amount(billed: Decimal, charge_category: str) -> Amount:
    """An amount without quantity or price."""
    return Amount(billed=billed, charge_category=charge_category, frequency="One-Time")


def _refund() -> Series:
    """November's correction of October: the drained node's hours come back."""
    hours = Decimal((story.RESTART_END - story.RESTART_START) // HOUR)
    owner = _owner(
        f"arn:aws:ec2:us-west-2:{story.TRAIN_ACCOUNT}:instance/"
        f"i-{story.node_name(story.FAILED_NODE)}",
        "Instance",
        stage="main-run",
        account=story.TRAIN_ACCOUNT,
    )
    refunded = hours * story.p5_rate_at(story.RESTART_START).contracted
    amount = Amount(
        billed=-refunded,
        charge_category="Adjustment",
        charge_class="Correction",
        frequency="One-Time",
    )
    booked = datetime(2026, 11, 4, tzinfo=UTC)
    return _once(skus.P5_REFUND, amount, owner, Period(start=booked, end=booked + DAY))


def build_bills(seed: int = story.DEFAULT_SEED) -> tuple[tuple[BillFile, ...], ChargeLedger]:
    """All bills of the demo and the ledger of what they say."""
    series = [
        *_p5_nodes(),
        *_preprocessing(),
        *_storage(),
        *_data_movement(seed),
        *_shared_services(),
        *_evaluation(),
    ]
    usage: defaultdict[date, Decimal] = defaultdict(Decimal)
    for one in series:
        if one.sku.provider == skus.AWS and one.owner.project:
            usage[one.billing_month] += one.amount.contracted * len(one.periods)
    series += [*_month_end_charges(dict(usage)), _refund()]
    ledger = ChargeLedger()
    return write_bills(series, ledger), ledger
