"""Storage, its requests and what larger objects save; prices come in, none is known here."""

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Final

from formulae.money import Money
from formulae.units import (
    BYTES_PER_GIB,
    BYTES_PER_TB,
    EXACT,
    S_PER_HOUR,
    QuantityError,
    require_positive,
    require_range,
    tb_from_bytes,
)

BITS_PER_BYTE: Final = 8
BYTES_PER_MEGABYTE: Final = 10**6
SHARD_BYTES_LOW: Final = 100 * BYTES_PER_MEGABYTE
SHARD_BYTES_HIGH: Final = 500 * BYTES_PER_MEGABYTE


class ShardSize(StrEnum):
    """How an object's size stands to the 100 to 500 MB that streaming from a bucket wants."""

    TOO_SMALL = "too_small"
    ADVISED = "advised"
    TOO_LARGE = "too_large"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectReads:
    """One way to lay a dataset out: how many objects, and what reading them asks and costs."""

    object_bytes: int
    size: ShardSize
    objects: int
    requests: int
    cost: Money


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardingWhatIf:
    """The same dataset as it lies and as shards; packing is paid once, reading in each epoch.

    `saving` is of reading alone; `net_saving` has packing taken off and is None without the price
    of a PUT.
    """

    as_is: ObjectReads
    as_shards: ObjectReads
    request_ratio: float
    saving: Money
    packing_cost: Money | None
    net_saving: Money | None


def storage_cost(terabytes: Decimal, months: Decimal, price_per_tb_month: Money) -> Money:
    """Cost of keeping data in one tier at one price.

    cost = terabytes * months * price

    Args:
        terabytes: kept on average, TB (1e12 bytes), >= 0.
        months: how long, months, >= 0.
        price_per_tb_month: money per TB and month.

    Returns:
        Money in the currency of the price, rounded once, half-even to 18 decimals.

    Raises:
        QuantityError: a quantity is negative or not finite.

    Source: definition of the TB-month that object stores bill.

    >>> cost = storage_cost(Decimal(1350), Decimal(1), Money.of(23, "USD"))
    >>> cost == Money.of(31_050, "USD")
    True
    """
    require_range("terabytes (TB)", float(terabytes), low=0)
    require_range("months", float(months), low=0)
    return price_per_tb_month.times(EXACT.multiply(terabytes, months))


def price_per_tb_from_price_per_gib(price_per_gib: Money) -> Money:
    """Price of a decimal TB from that of a binary GiB, which several providers bill as "GB".

    price per TB = price per GiB * 1e12 / 2^30

    Args:
        price_per_gib: money per GiB (2^30 bytes), of storage or of transfer.

    Returns:
        Money per TB (1e12 bytes), rounded half-even to 18 decimals.

    Source: IEC 80000-13 (1 TB is 931.3225746154785... GiB).

    >>> price = price_per_tb_from_price_per_gib(Money.of("0.023", "USD"))
    >>> round(price.amount, 2)
    Decimal('21.42')
    """
    gib_per_tb = EXACT.divide(Decimal(BYTES_PER_TB), Decimal(BYTES_PER_GIB))
    return price_per_gib.times(gib_per_tb)


def video_bytes(hours: float, cameras: int, bits_per_s_per_camera: float) -> float:
    """Size of compressed video of several cameras that record together.

    bytes = hours * 3600 * cameras * bit rate / 8

    Args:
        hours: recorded time of the whole rig, h, >= 0; not camera-hours.
        cameras: count, >= 1.
        bits_per_s_per_camera: mean rate of one compressed stream, bit/s, > 0.

    Returns:
        Bytes.

    Raises:
        QuantityError: a quantity is out of its range.

    Source: definition of a bit rate. 480p at 12 Hz compresses to about 0.5 Mbit/s.

    >>> video_bytes(1, 6, 500_000)
    1350000000.0
    """
    require_range("hours (h)", hours, low=0)
    require_positive("cameras", cameras)
    require_positive("bits_per_s_per_camera (bit/s)", bits_per_s_per_camera)
    return hours * S_PER_HOUR * cameras * bits_per_s_per_camera / BITS_PER_BYTE


def video_terabytes(hours: float, cameras: int, bits_per_s_per_camera: float) -> float:
    """Size of compressed video of several cameras that record together, in TB.

    TB = hours * 3600 * cameras * bit rate / 8 / 1e12

    Args:
        hours: recorded time of the whole rig, h, >= 0; not camera-hours.
        cameras: count, >= 1.
        bits_per_s_per_camera: mean rate of one compressed stream, bit/s, > 0.

    Returns:
        TB (1e12 bytes).

    Raises:
        QuantityError: a quantity is out of its range.

    Source: definition of a bit rate.

    >>> video_terabytes(1_000_000, 6, 500_000)
    1350.0
    """
    return tb_from_bytes(video_bytes(hours, cameras, bits_per_s_per_camera))


def request_cost(count: int, price_per_1000: Money) -> Money:
    """Cost of requests of one verb to an object store.

    cost = count / 1000 * price

    Args:
        count: requests, >= 0.
        price_per_1000: money per 1000 requests of that verb; GET and PUT differ.

    Returns:
        Money in the currency of the price, rounded once, half-even to 18 decimals.

    Raises:
        QuantityError: the count is negative.

    Source: definition of the unit that object stores bill.

    >>> request_cost(3_000_000_000, Money.of("0.0004", "USD")) == Money.of(1_200, "USD")
    True
    """
    require_range("count (requests)", count, low=0)
    return price_per_1000.times(EXACT.scaleb(Decimal(count), -3))


def requests_for(bytes_total: int, object_bytes: int, epochs: int = 1) -> int:
    """Requests that read a dataset of equal objects, one GET for each, in every epoch.

    requests = ceil(bytes / object size) * epochs

    Args:
        bytes_total: the dataset, bytes, >= 0.
        object_bytes: mean size of an object, bytes, >= 1.
        epochs: how often all of it is read, >= 0.

    Returns:
        Requests, a count.

    Raises:
        QuantityError: a quantity is out of its range.

    Source: one GET fetches one object; ranged reads of large objects ask more.

    >>> requests_for(1_350 * 10**12, 250 * 10**6)
    5400000
    """
    require_range("bytes_total (bytes)", bytes_total, low=0)
    require_range("object_bytes (bytes)", object_bytes, low=1)
    require_range("epochs", epochs, low=0)
    return -(-bytes_total // object_bytes) * epochs


def shard_size(object_bytes: int) -> ShardSize:
    """How an object's size stands to the advised size of a shard.

    advised when 100 MB <= size <= 500 MB

    Args:
        object_bytes: mean size of an object, bytes, >= 1.

    Returns:
        Too small, advised or too large.

    Raises:
        QuantityError: the size is below 1.

    Source: chapter 23, section 23.2: shards of 100 to 500 MB, one GET each.

    >>> shard_size(250 * 10**6).value, shard_size(40_000).value, shard_size(10**9).value
    ('advised', 'too_small', 'too_large')
    """
    require_range("object_bytes (bytes)", object_bytes, low=1)
    if object_bytes < SHARD_BYTES_LOW:
        return ShardSize.TOO_SMALL
    return ShardSize.ADVISED if object_bytes <= SHARD_BYTES_HIGH else ShardSize.TOO_LARGE


def sharding_what_if(
    *,
    bytes_total: int,
    object_bytes: int,
    shard_bytes: int,
    epochs: int,
    price_per_1000_get: Money,
    price_per_1000_put: Money | None = None,
) -> ShardingWhatIf:
    """What reading costs as the dataset lies and as shards, and what packing it takes off.

    saving = GET price * (objects - shards) * epochs / 1000;
    packing = (objects * GET price + shards * PUT price) / 1000

    Args:
        bytes_total: the dataset, bytes, >= 1.
        object_bytes: mean size of an object as it lies, bytes, >= 1.
        shard_bytes: size of a shard, bytes, >= object_bytes; 100 to 500 MB is advised.
        epochs: how often all of it is read, >= 1.
        price_per_1000_get: money per 1000 GET requests.
        price_per_1000_put: money per 1000 PUT requests, same currency; packing is unknown without.

    Returns:
        Both layouts, the ratio of their requests, and money: saving, packing, net saving. A saving
        can be negative, when packing costs more than the epochs give back.

    Raises:
        QuantityError: a quantity is out of its range.
        CurrencyMismatchError: GET and PUT are priced in two currencies.

    Source: chapter 23, section 23.2; one GET for each object, each object read once to be packed.

    >>> what_if = sharding_what_if(
    ...     bytes_total=1_350 * 10**12,
    ...     object_bytes=450_000,
    ...     shard_bytes=250 * 10**6,
    ...     epochs=1,
    ...     price_per_1000_get=Money.of("0.0004", "USD"),
    ... )
    >>> what_if.as_is.requests, what_if.as_shards.requests
    (3000000000, 5400000)
    >>> what_if.as_shards.cost == Money.of("2.16", "USD")
    True
    >>> what_if.saving == Money.of("1197.84", "USD")
    True
    """
    require_range("bytes_total (bytes)", bytes_total, low=1)
    require_range("epochs", epochs, low=1)
    if shard_bytes < object_bytes:
        raise QuantityError(
            f"shard_bytes is {shard_bytes}; a shard holds at least one object of {object_bytes}"
        )
    as_is = _object_reads(bytes_total, object_bytes, epochs, price_per_1000_get)
    as_shards = _object_reads(bytes_total, shard_bytes, epochs, price_per_1000_get)
    saving = as_is.cost - as_shards.cost
    packing = None
    if price_per_1000_put is not None:
        packing = request_cost(as_is.objects, price_per_1000_get)
        packing += request_cost(as_shards.objects, price_per_1000_put)
    return ShardingWhatIf(
        as_is=as_is,
        as_shards=as_shards,
        request_ratio=as_is.requests / as_shards.requests,
        saving=saving,
        packing_cost=packing,
        net_saving=None if packing is None else saving - packing,
    )


def _object_reads(bytes_total: int, object_bytes: int, epochs: int, price: Money) -> ObjectReads:
    """Reading the dataset in objects of one size."""
    requests = requests_for(bytes_total, object_bytes, epochs)
    return ObjectReads(
        object_bytes=object_bytes,
        size=shard_size(object_bytes),
        objects=requests_for(bytes_total, object_bytes),
        requests=requests,
        cost=request_cost(requests, price),
    )
