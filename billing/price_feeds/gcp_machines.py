"""Google Cloud's accelerated machines by their parts: GPUs, cores and memory have own SKUs.

Machine shapes: Google Cloud, "Accelerator-optimized machine family" (compute documentation). Local
SSD is not in the price: it is storage of its own.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Final

from django.utils.translation import gettext as _

from billing.price_feeds.contract import PARTS, FeedMachine, FeedPrice
from formulae.money import Money, divide


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A machine beside its GPUs; `family` as the SKUs of cores and memory name it."""

    family: str
    gpu_words: str  # pattern of the GPU's SKU
    cores: int
    memory_gib: int


SHAPES: Final = {
    "a2-highgpu-8g": Shape(family="A2", gpu_words=r"A100 GPU|A100 40", cores=96, memory_gib=680),
    "a2-ultragpu-8g": Shape(family="A2", gpu_words=r"A100 80", cores=96, memory_gib=1360),
    "a3-highgpu-8g": Shape(family="A3", gpu_words=r"H100 80GB GPU", cores=208, memory_gib=1872),
    "a3-megagpu-8g": Shape(
        family="A3Plus", gpu_words=r"H100 80GB (?:Mega|Plus)", cores=208, memory_gib=1872
    ),
    "a3-ultragpu-8g": Shape(family="A3Ultra", gpu_words=r"H200", cores=224, memory_gib=2952),
    "a4-highgpu-8g": Shape(family="A4", gpu_words=r"B200", cores=224, memory_gib=3968),
    "g2-standard-4": Shape(family="G2", gpu_words=r"\bL4\b", cores=4, memory_gib=16),
}
_PART: Final = re.compile(
    r"\b(?P<family>A[2-4](?:Plus|Ultra|Mega|X)?|G2) Instance (?P<part>Core|Ram)\b", re.IGNORECASE
)
_Place = tuple[str, str]


def part_of(description: str) -> tuple[str, str] | None:
    """(family, "core" or "ram") that a SKU is of; None of another SKU.

    >>> part_of("Spot Preemptible A3Plus Instance Ram running in Iowa"), part_of("N2 Instance Ram")
    (('A3PLUS', 'ram'), None)
    """
    match = _PART.search(description)
    return (match["family"].upper(), match["part"].lower()) if match else None


@dataclass(slots=True, kw_only=True)
class Parts:
    """The prices of cores and memory by family, place and way to buy."""

    found: dict[tuple[str, str, _Place], FeedPrice] = field(default_factory=dict)

    def add(self, description: str, price: FeedPrice) -> None:
        """Keep a part's price."""
        named = part_of(description)
        if named is not None:
            self.found[*named, (price.region, price.purchase)] = price

    def beside(self, shape: Shape, gpu: FeedPrice) -> list[tuple[int, FeedPrice]] | None:
        """So many of each part; None where one has no price in the GPU's place and currency."""
        place = (gpu.region, gpu.purchase)
        found = []
        for part, count in (("core", shape.cores), ("ram", shape.memory_gib)):
            price = self.found.get((shape.family.upper(), part, place))
            if price is None or price.price.currency != gpu.price.currency:
                return None
            found.append((count, price))
        return found


def with_machines(
    prices: Iterable[FeedPrice],
    parts: Parts,
    machines: Iterable[FeedMachine],
    ignored: Counter[str],
) -> list[FeedPrice]:
    """The prices, GPUs with their share of the machine's cores and memory where all are listed."""
    by_name = {machine.name: machine for machine in machines}
    used: dict[str, int] = defaultdict(int)
    found = []
    for price in prices:
        if price.cost_class != "accelerator":
            found.append(price)
            continue
        whole = _whole_machine(price, parts, by_name)
        used[price.region] += whole is not None
        told = _("the GPU alone: cores and memory of its machine are billed beside it")
        found.append(whole or replace(price, note=f"{told}; {price.note}"))
    if parts.found:
        ignored[PARTS] += len(parts.found)
    return found


def _whole_machine(
    gpu: FeedPrice, parts: Parts, machines: dict[str, FeedMachine]
) -> FeedPrice | None:
    """The accelerator-hour with all that comes with it; None where the machine is not known."""
    for name, shape in SHAPES.items():
        machine = machines.get(name)
        if machine is None or machine.accelerator_key != gpu.accelerator_key:
            continue
        if not re.search(shape.gpu_words, gpu.instance_type, re.IGNORECASE):
            continue
        beside = parts.beside(shape, gpu)
        if beside is None:
            return None
        hour = gpu.price.times(machine.accelerator_count)
        for count, part in beside:
            hour += part.price.times(Decimal(count))
        each = divide(hour.amount, machine.accelerator_count)
        if each is None:
            return None
        newest = max([gpu.effective_on, *(part.effective_on for _count, part in beside)])
        return replace(
            gpu,
            price=Money(amount=each, currency=gpu.price.currency),
            instance_type=name,
            effective_on=newest,
            sku_id="+".join([gpu.sku_id, *(part.sku_id for _count, part in beside)]),
            note=_(
                "{name}: GPUs, {cores} cores and {memory} GiB of memory over {gpus} GPUs; "
                "without local SSD"
            ).format(
                name=name,
                cores=shape.cores,
                memory=shape.memory_gib,
                gpus=machine.accelerator_count,
            ),
        )
    return None
