"""What a month's bills show about waste, each with its price: pure rules over groups of charges.

A saving is stated where the bill gives the sum, or with the assumption that it rests on.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Final

from billing.finding_records import SpendFinding, SpendLine
from formulae.money import divide
from formulae.units import BYTES_PER_TB, EXACT

SHARD_BYTES: Final = 256 * 10**6  # a WebDataset shard: 100 to 500 MB
PASSES_A_MONTH: Final = 31  # the whole store read once a day
LOGGING_GROWTH: Final = Decimal("1.2")
INFREQUENT_SHARE: Final = Decimal("0.45")  # what infrequent access saves of hot object storage
READ_BY_GET: Final = ("storage_object", "storage_object_infrequent")
_NAT: Final = re.compile(r"nat ?gateway-bytes|natgateway-bytes|processed by nat|nat data", re.I)
Amounts = dict[str, Decimal]


def findings_of(
    lines: Sequence[SpendLine], before: Sequence[SpendLine], hot: Sequence[SpendLine]
) -> list[SpendFinding]:
    """Every finding, the dearest first.

    Args:
        lines: the month's charges by x_cost_class, x_usage_type, x_accelerator and project; and
            what bears no tag, by has_tags alone.
        before: the same of the month before; empty where it is not known.
        hot: storage and request charges by x_cost_class and resource_id.
    """
    found = [
        *_inter_region(lines),
        *_nat_bytes(lines),
        *_small_reads(lines),
        *_unread(hot),
        *_untagged(lines),
        *_unallocated(lines),
        *_logging(lines, before),
        *_idle(lines),
        *_unmapped(lines),
    ]
    return sorted(found, key=lambda one: (-(one.saving or 0), -one.cost, one.code))


def _by_currency(lines: Iterable[SpendLine]) -> dict[str, list[SpendLine]]:
    found: dict[str, list[SpendLine]] = defaultdict(list)
    for line in lines:
        found[line.currency].append(line)
    return found


def _cost(lines: Iterable[SpendLine]) -> Decimal:
    total = Decimal(0)
    for line in lines:
        total = EXACT.add(total, line.cost)
    return total


def _sum(values: Iterable[Decimal | None]) -> Decimal | None:
    known = [value for value in values if value is not None]
    total = Decimal(0)
    for value in known:
        total = EXACT.add(total, value)
    return total if known else None


def _of_class(lines: Iterable[SpendLine], *classes: str) -> list[SpendLine]:
    return [line for line in lines if line.keys.get("x_cost_class") in classes]


def _text(value: Decimal | None, *, digits: int = 0) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _terabytes(lines: Iterable[SpendLine]) -> str:
    moved = _sum(line.transfer_bytes for line in lines)
    return "" if moved is None else _text(divide(moved, Decimal(BYTES_PER_TB)), digits=3)


def _inter_region(lines: Sequence[SpendLine]) -> Iterable[SpendFinding]:
    """Bytes between regions: all of it goes when bucket and cluster share a region."""
    for currency, some in _by_currency(_of_class(lines, "transfer_inter_region")).items():
        cost = _cost(some)
        if cost > 0:
            yield SpendFinding(
                code="transfer_inter_region",
                currency=currency,
                cost=cost,
                saving=cost,
                facts={"terabytes": _terabytes(some)},
                assumption="same_region",
                filters=("x_cost_class=transfer_inter_region",),
            )


def _nat_bytes(lines: Sequence[SpendLine]) -> Iterable[SpendFinding]:
    """Bytes through a NAT gateway: reads of object storage need none over a gateway endpoint."""
    nat = [
        line
        for line in _of_class(lines, "transfer_intra_region")
        if _NAT.search(line.keys.get("x_usage_type") or "")
    ]
    for currency, some in _by_currency(nat).items():
        cost = _cost(some)
        if cost > 0:
            types = sorted({line.keys.get("x_usage_type") or "" for line in some})
            yield SpendFinding(
                code="nat_bytes",
                currency=currency,
                cost=cost,
                saving=cost,
                facts={"terabytes": _terabytes(some)},
                assumption="bytes_are_reads",
                filters=tuple(f"x_usage_type={name}" for name in types),
            )


def _small_reads(lines: Sequence[SpendLine]) -> Iterable[SpendFinding]:
    """More GETs than the stored bytes need: shards of 256 MB, read whole once a day, need fewer.

    A TB that is stored for the month is one TB-month, so a month in part needs fewer passes too.
    """
    stored = _sum(line.storage_tb_month for line in _of_class(lines, *READ_BY_GET))
    if not stored:
        return
    shards = divide(EXACT.multiply(stored, Decimal(BYTES_PER_TB)), Decimal(SHARD_BYTES))
    for currency, some in _by_currency(_of_class(lines, "request_get")).items():
        gets, cost = _sum(line.requests for line in some), _cost(some)
        if not gets or cost <= 0 or shards is None:
            continue
        needed = EXACT.multiply(max(shards, Decimal(1)), Decimal(PASSES_A_MONTH))
        share = divide(needed, gets)
        if share is None or share >= 1:
            continue
        yield SpendFinding(
            code="small_reads",
            currency=currency,
            cost=cost,
            saving=EXACT.multiply(cost, 1 - share),
            facts={
                "gets": _text(gets),
                "tb_months": _text(stored, digits=3),
                "needed": _text(needed),
                "shard_mb": str(SHARD_BYTES // 10**6),
            },
            assumption="one_pass_a_day",
            filters=("x_cost_class=request_get",),
        )


def _unread(hot: Sequence[SpendLine]) -> Iterable[SpendFinding]:
    """Hot object storage of resources that nobody read in the month."""
    read = {line.keys.get("resource_id") for line in _of_class(hot, "request_get") if line.requests}
    if not read:  # a bill that states no reads by resource shows nothing of this
        return
    idle = [
        line
        for line in _of_class(hot, "storage_object")
        if line.keys.get("resource_id") and line.keys["resource_id"] not in read
    ]
    for currency, some in _by_currency(idle).items():
        cost = _cost(some)
        if cost > 0:
            names = sorted({line.keys["resource_id"] or "" for line in some})
            stored = _sum(line.storage_tb_month for line in some)
            yield SpendFinding(
                code="hot_storage_unread",
                currency=currency,
                cost=cost,
                saving=EXACT.multiply(cost, INFREQUENT_SHARE),
                facts={"resources": str(len(names)), "tb_months": _text(stored, digits=3)},
                assumption="infrequent_access",
                filters=(
                    "x_cost_class=storage_object",
                    *(f"resource_id={name}" for name in names[:20]),
                ),
            )


def _untagged(lines: Sequence[SpendLine]) -> Iterable[SpendFinding]:
    """Usage that bears no tag: nobody can be asked about it."""
    bare = [line for line in lines if "has_tags" in line.keys]
    whole = _by_currency(line for line in lines if "has_tags" not in line.keys)
    total = {currency: _cost(some) for currency, some in whole.items()}
    for currency, some in _by_currency(bare).items():
        cost, share = _cost(some), None
        if total.get(currency, 0) > 0:
            share = divide(EXACT.multiply(cost, Decimal(100)), total[currency])
        if cost > 0 and share is not None and share >= 1:
            yield SpendFinding(
                code="untagged",
                currency=currency,
                cost=cost,
                saving=None,
                facts={"percent": _text(share)},
            )


def _unallocated(lines: Sequence[SpendLine]) -> Iterable[SpendFinding]:
    """What no rule gives to a project."""
    nobodys = [line for line in lines if line.keys.get("project", "") is None]
    for currency, some in _by_currency(nobodys).items():
        cost = _cost(some)
        if cost > 0:
            yield SpendFinding(
                code="unallocated", currency=currency, cost=cost, saving=None, filters=("project=",)
            )


def _logging(lines: Sequence[SpendLine], before: Sequence[SpendLine]) -> Iterable[SpendFinding]:
    """Logging that grew by more than a fifth since the month before."""
    earlier = {
        currency: _cost(some)
        for currency, some in _by_currency(_of_class(before, "logging")).items()
    }
    for currency, some in _by_currency(_of_class(lines, "logging")).items():
        cost, was = _cost(some), earlier.get(currency)
        if was and was > 0 and cost > EXACT.multiply(was, LOGGING_GROWTH):
            growth = divide(EXACT.multiply(EXACT.subtract(cost, was), Decimal(100)), was)
            yield SpendFinding(
                code="logging_growth",
                currency=currency,
                cost=cost,
                saving=EXACT.subtract(cost, was),
                facts={"percent": _text(growth)},
                assumption="as_before",
                filters=("x_cost_class=logging",),
            )


def _idle(lines: Sequence[SpendLine]) -> Iterable[SpendFinding]:
    """Capacity that was billed and used by nobody."""
    idle = [line for line in lines if line.idle_accelerator_h]
    for currency, some in _by_currency(idle).items():
        cost = _cost(some)
        if cost > 0:
            hours = _sum(line.idle_accelerator_h for line in some)
            classes = sorted({line.keys.get("x_cost_class") or "" for line in some})
            yield SpendFinding(
                code="idle_capacity",
                currency=currency,
                cost=cost,
                saving=cost,
                facts={"hours": _text(hours, digits=1)},
                assumption="capacity_released",
                filters=tuple(f"x_cost_class={name}" for name in classes),
            )


def _unmapped(lines: Sequence[SpendLine]) -> Iterable[SpendFinding]:
    """Accelerators that the catalogue does not know: their hours are missing from every sum."""
    unknown = [line for line in lines if line.keys.get("x_accelerator") == "unmapped"]
    for currency, some in _by_currency(unknown).items():
        yield SpendFinding(
            code="unmapped_accelerator",
            currency=currency,
            cost=_cost(some),
            saving=None,
            facts={"rows": str(sum(line.rows for line in some))},
            filters=("x_accelerator=unmapped",),
        )
