"""Traffic that is billed by the gigabyte: out, between regions, through NAT; no prices here."""

from decimal import Decimal
from typing import Final

from formulae.money import Money
from formulae.units import EXACT, require_range

GB_PER_TB: Final = 1_000


def transfer_cost(terabytes: Decimal, price_per_gb: Money) -> Money:
    """Cost of moving data once at one price.

    cost = terabytes * 1000 * price

    Args:
        terabytes: moved, TB (1e12 bytes), >= 0.
        price_per_gb: money per GB (1e9 bytes).

    Returns:
        Money in the currency of the price, rounded once, half-even to 18 decimals.

    Raises:
        QuantityError: the quantity is negative or not finite.

    Source: definition of the unit that providers bill.

    >>> transfer_cost(Decimal("2.5"), Money.of("0.09", "USD")) == Money.of(225, "USD")
    True
    """
    require_range("terabytes (TB)", float(terabytes), low=0)
    return price_per_gb.times(EXACT.multiply(terabytes, Decimal(GB_PER_TB)))


def egress_cost(terabytes: Decimal, price_per_gb: Money, *, free_gb: Decimal = Decimal(0)) -> Money:
    """Cost of data that leaves the provider, above what is free.

    cost = max(0, terabytes * 1000 - free) * price

    Args:
        terabytes: sent to the internet or another provider, TB, >= 0.
        price_per_gb: money per GB; one price, without the steps of large volumes.
        free_gb: not charged in that time, GB, >= 0.

    Returns:
        Money in the currency of the price, rounded once, half-even to 18 decimals.

    Raises:
        QuantityError: a quantity is negative or not finite.

    Source: definition of the unit that providers bill.

    >>> egress_cost(Decimal(1), Money.of("0.09", "USD"), free_gb=Decimal(100)).amount == 81
    True
    """
    require_range("terabytes (TB)", float(terabytes), low=0)
    require_range("free_gb (GB)", float(free_gb), low=0)
    charged_gb = EXACT.subtract(EXACT.multiply(terabytes, Decimal(GB_PER_TB)), free_gb)
    return price_per_gb.times(max(charged_gb, Decimal(0)))


def traffic_terabytes(
    dataset_terabytes: Decimal, *, epochs: int, cached_fraction: Decimal = Decimal(0)
) -> Decimal:
    """Data that training pulls from its bucket: all of it in every epoch, but what a cache holds.

    TB = dataset * (1 + (epochs - 1) * (1 - cached))

    Args:
        dataset_terabytes: read in an epoch, TB, >= 0.
        epochs: count, >= 0; nothing is read in none.
        cached_fraction: share that a faster tier keeps after the first epoch, 0 to 1.

    Returns:
        TB, exact.

    Raises:
        QuantityError: a quantity is out of its range.

    Source: definition; the first epoch fills the cache.

    >>> traffic_terabytes(Decimal(1350), epochs=3)
    Decimal('4050')
    >>> traffic_terabytes(Decimal(1000), epochs=3, cached_fraction=Decimal("0.5"))
    Decimal('2000.0')
    """
    require_range("dataset_terabytes (TB)", float(dataset_terabytes), low=0)
    require_range("epochs", epochs, low=0)
    require_range("cached_fraction", float(cached_fraction), low=0, high=1)
    if epochs == 0:
        return Decimal(0)
    later = EXACT.multiply(Decimal(epochs - 1), EXACT.subtract(Decimal(1), cached_fraction))
    return EXACT.multiply(dataset_terabytes, EXACT.add(Decimal(1), later))


def inter_region_cost(
    dataset_terabytes: Decimal,
    price_per_gb: Money,
    *,
    epochs: int,
    cached_fraction: Decimal = Decimal(0),
) -> Money:
    """Cost of training in another region than the one of its bucket.

    cost = dataset * (1 + (epochs - 1) * (1 - cached)) * 1000 * price

    Args:
        dataset_terabytes: read in an epoch, TB, >= 0.
        price_per_gb: money per GB between the two regions.
        epochs: count, >= 0.
        cached_fraction: share that stays beside the accelerators after the first epoch, 0 to 1.

    Returns:
        Money in the currency of the price, rounded once, half-even to 18 decimals.

    Raises:
        QuantityError: a quantity is out of its range.

    Source: chapter 23, section 23.2: compute and bucket belong in one region.

    >>> inter_region_cost(Decimal(1350), Money.of("0.02", "USD"), epochs=2).amount == 54_000
    True
    """
    moved = traffic_terabytes(dataset_terabytes, epochs=epochs, cached_fraction=cached_fraction)
    return transfer_cost(moved, price_per_gb)


def nat_leak_cost(
    dataset_terabytes: Decimal,
    price_per_gb: Money,
    *,
    epochs: int,
    cached_fraction: Decimal = Decimal(0),
) -> Money:
    """Cost of reading a bucket through a NAT gateway, where a gateway endpoint would be free.

    cost = dataset * (1 + (epochs - 1) * (1 - cached)) * 1000 * price

    Args:
        dataset_terabytes: read in an epoch, TB, >= 0.
        price_per_gb: money per GB that the NAT gateway processes; its hours are not in it.
        epochs: count, >= 0.
        cached_fraction: share that stays beside the accelerators after the first epoch, 0 to 1.

    Returns:
        Money in the currency of the price, rounded once, half-even to 18 decimals: all of it is
        avoidable.

    Raises:
        QuantityError: a quantity is out of its range.

    Source: chapter 23, section 23.2: traffic over a gateway endpoint is not processed by NAT.

    >>> nat_leak_cost(Decimal(1350), Money.of("0.045", "USD"), epochs=1).amount == 60_750
    True
    """
    moved = traffic_terabytes(dataset_terabytes, epochs=epochs, cached_fraction=cached_fraction)
    return transfer_cost(moved, price_per_gb)
