"""What a price feed reads and how it fails; the provider's words end in its own module."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from typing import Final, Protocol

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from billing.price_records import ON_DEMAND, PriceKey, PriceWish
from formulae.money import Money
from formulae.units import BYTES_PER_GIB, EXACT

ACCELERATORS: Final = "accelerators"
STORAGE: Final = "storage"
TRANSFER: Final = "transfer"
FEED_SERVICES: Final = (ACCELERATORS, STORAGE, TRANSFER)
FEED_NAMES: Final = {"aws": "AWS Price List", "gcp": "Google Cloud Billing Catalog"}
GIB_NOTE: Final = "the provider's GB of 2^30 bytes, converted to 10^9 bytes"
LONGEST_NAME: Final = 120
# Why a line of the price list is no price of ours; the counts of these are shown.
OTHER_PRODUCTS: Final = "other_products"
OTHER_TERMS: Final = "other_terms"
UNKNOWN_ACCELERATOR: Final = "unknown_accelerator"
COUNT_DIFFERS: Final = "count_differs"
LATER_TIERS: Final = "later_tiers"
FREE_TIERS: Final = "free_tiers"
OTHER_DESTINATIONS: Final = "other_destinations"
PARTS: Final = "parts_of_machines"
IGNORED_WORDS: Final = {
    OTHER_PRODUCTS: gettext_lazy("products that are not priced here"),
    OTHER_TERMS: gettext_lazy("other ways to buy: upfront payments, sole tenancy, queued capacity"),
    UNKNOWN_ACCELERATOR: gettext_lazy("accelerators that the catalogue does not know"),
    COUNT_DIFFERS: gettext_lazy("machines with another count of accelerators than the catalogue"),
    LATER_TIERS: gettext_lazy("later price tiers: the first paid one counts"),
    FREE_TIERS: gettext_lazy("free allowances"),
    OTHER_DESTINATIONS: gettext_lazy("transfer to destinations with another price"),
    PARTS: gettext_lazy("cores and memory, counted in the price of their machine"),
}

Report = Callable[[int, str], None]


class PriceFeedError(Exception):
    """A provider's price list that could not be read: which kind of fault, and what to do."""

    def __init__(self, code: str, message: str, *, is_permanent: bool) -> None:
        self.code, self.message, self.is_permanent = code, message, is_permanent
        super().__init__(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedSettings:
    """What a feed is asked for: the regions in the provider's words, and the kinds of prices."""

    regions: tuple[str, ...]
    services: tuple[str, ...] = FEED_SERVICES


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedMachine:
    """A machine of the catalogue that holds accelerators."""

    name: str
    accelerator_key: str
    accelerator_count: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedPrice:
    """One price of a provider's list: exact, with its SKU and the day from which it holds."""

    cost_class: str
    unit: str
    price: Money
    effective_on: date
    provider: str
    region: str
    sku_id: str
    published: str  # the provider's own time of this state of the list, as text
    accelerator_key: str = ""
    instance_type: str = ""
    purchase: str = ON_DEMAND
    note: str = ""

    @property
    def key(self) -> PriceKey:
        """What the prices of one thing share."""
        return self.wish().key

    def wish(self) -> PriceWish:
        """The price as a price book takes it."""
        return PriceWish(
            cost_class=self.cost_class,
            unit=self.unit,
            price=self.price,
            valid_from=self.effective_on,
            source=f"{FEED_NAMES[self.provider]}, SKU {self.sku_id}, {self.published}"[:300],
            source_date=self.effective_on.isoformat(),
            provider=self.provider,
            region=self.region,
            accelerator_key=self.accelerator_key,
            instance_type=self.instance_type[:LONGEST_NAME],
            purchase=self.purchase,
            note=self.note,
        )


@dataclass(slots=True, kw_only=True)
class FeedReading:
    """The prices of one reading, how many lines were seen, and why others are no price of ours."""

    prices: list[FeedPrice] = field(default_factory=list)
    seen: int = 0
    ignored: Counter[str] = field(default_factory=Counter)
    unknown_names: set[str] = field(default_factory=set)

    def settled(self) -> "FeedReading":
        """The reading with one price a key: the commonest destination's, and no two of a name."""
        prices, others = commonest_destinations(self.prices)
        ignored = self.ignored + Counter({OTHER_DESTINATIONS: others} if others else {})
        return FeedReading(
            prices=one_a_key(prices),
            seen=self.seen,
            ignored=ignored,
            unknown_names=self.unknown_names,
        )


class PriceFeed(Protocol):
    """Reads one provider's price list.

    Raises:
        PriceFeedError: a page could not be read; nothing of the reading may be stored.
    """

    def __call__(
        self, settings: FeedSettings, machines: Iterable[FeedMachine], report: Report
    ) -> FeedReading:
        """Read everything that the settings ask for."""
        ...


def per_gb(price: Money) -> Money:
    """The price of 10^9 bytes from that of 2^30 bytes: times 1e9 / 2^30, rounded once.

    >>> per_gb(Money.of("1.073741824", "USD")).amount == 1
    True
    """
    return price.times(EXACT.divide(Decimal(10**9), Decimal(BYTES_PER_GIB)))


def commonest_destinations(prices: Iterable[FeedPrice]) -> tuple[list[FeedPrice], int]:
    """One price a region for transfer to many destinations: the commonest, of equals the dearer.

    Returns the prices and how many destinations have another one.
    """
    kept: list[FeedPrice] = []
    groups: dict[PriceKey, list[FeedPrice]] = defaultdict(list)
    for price in prices:
        if price.cost_class in ("egress", "transfer_inter_region"):
            groups[price.key].append(price)
        else:
            kept.append(price)
    others = 0
    for group in groups.values():
        counts = Counter(price.price.amount for price in group)
        amount = max(counts, key=lambda value: (counts[value], value))
        same = sorted(
            (price for price in group if price.price.amount == amount),
            key=lambda price: price.sku_id,
        )
        others += len(group) - len(same)
        note = same[0].note
        if len(group) > 1:
            told = _("the price of {count} of {all} destinations").format(
                count=len(same), all=len(group)
            )
            note = f"{told}; {note}" if note else told
        kept.append(replace(same[0], note=note))
    return kept, others


def one_a_key(prices: Iterable[FeedPrice]) -> list[FeedPrice]:
    """Prices whose keys differ: of several products with one name, all but the first add the SKU.

    The same key with the same price is one price.
    """
    found: dict[PriceKey, FeedPrice] = {}
    for price in sorted(prices, key=lambda one: (one.key, one.sku_id)):
        there = found.get(price.key)
        if there is None:
            found[price.key] = price
        elif there.price != price.price:
            name = f"{price.instance_type or price.cost_class} ({price.sku_id})"
            named = replace(price, instance_type=name[-LONGEST_NAME:])
            found[named.key] = named
    return list(found.values())


def ignored_in_words(ignored: Mapping[str, int]) -> list[tuple[str, int]]:
    """Each reason with its count, the largest first."""
    ordered = sorted(ignored.items(), key=lambda item: (-item[1], item[0]))
    return [(str(IGNORED_WORDS.get(code, code)), count) for code, count in ordered]
