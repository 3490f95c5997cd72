"""What a bill's units mean: hours, TB-months, requests, bytes in one unit; no engine, no Django.

Providers write "GB" for 2^30 bytes (AWS, Google and Azure say so in their storage and transfer
documentation); units that others write are decimal unless they say GiB.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from formulae.units import BYTES_PER_GB, BYTES_PER_GIB, BYTES_PER_TB, EXACT

BINARY_PROVIDERS: Final = frozenset({"aws", "gcp", "azure"})
_COUNT: Final = re.compile(r"^\s*([0-9][0-9,]*(?:\.[0-9]+)?)\s*([KMB]?)(?![a-z])\s*", re.IGNORECASE)
_SCALE: Final = {"": 1, "K": 1_000, "M": 1_000_000, "B": 1_000_000_000}
_SIZE: Final = re.compile(
    r"^(?P<size>bytes?|kb|kib|mb|mib|gb|gib|tb|tib|pb|pib|kilobytes?|megabytes?|gigabytes?|terabytes?"
    r"|kibibytes?|mebibytes?|gibibytes?|tebibytes?|byte)"
    r"(?:[\s/_-]*(?P<time>mo|mos|months?|hrs?|hours?|h|days?|seconds?|secs?|s))?\b",
    re.IGNORECASE,
)
_TIME: Final = re.compile(
    r"^(?P<thing>[a-z ]*?)[\s-]*(?P<time>hrs?|hours?|h|minutes?|mins?|seconds?|secs?)$",
    re.IGNORECASE,
)
_REQUESTS: Final = re.compile(
    r"^(?:api[\s-]*)?(?:requests?|calls?|operations?|ops|transactions?|count|puts?|gets?)\b|^$",
    re.IGNORECASE,
)
_ACCELERATOR_THINGS: Final = frozenset(
    {
        "",
        "gpu",
        "gpus",
        "accelerator",
        "chip",
        "chips",
        "tpu",
        "instance",
        "instances",
        "vm",
        "node",
    }
)
_PREFIXES: Final = {"k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_SECONDS: Final = {"h": 3600, "m": 60, "s": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitMeaning:
    """What one unit is; None where it is no such thing."""

    seconds: int | None = None  # of an accelerator, an instance, or of nothing named
    units_in_one: Decimal = Decimal(1)  # "10 Hours" are ten
    tb_months: Decimal | None = None
    tb_seconds: Decimal | None = None  # TB-months depend on the month's length
    requests: Decimal | None = None
    size_bytes: Decimal | None = None


def meaning_of(unit: str, *, provider: str) -> UnitMeaning:
    """Read a unit as a bill writes it; `provider` is aws, gcp, azure or empty.

    >>> meaning_of("GB-Mo", provider="aws").tb_months
    Decimal('0.001073741824')
    >>> meaning_of("100 GB/Month", provider="").tb_months
    Decimal('0.1')
    >>> meaning_of("10K", provider="azure").requests, meaning_of("Hrs", provider="aws").seconds
    (Decimal('10000'), 3600)
    """
    count, words = _counted(unit)
    if found := _SIZE.match(words):
        size = EXACT.multiply(count, Decimal(_bytes(found["size"], provider)))
        return _sized(size, found["time"])
    if found := _TIME.match(words):
        if found["thing"].strip().lower() not in _ACCELERATOR_THINGS:
            return UnitMeaning()
        return UnitMeaning(seconds=_SECONDS[found["time"][0].lower()], units_in_one=count)
    if _REQUESTS.match(words) and unit.strip():
        return UnitMeaning(requests=count)
    return UnitMeaning()


def _counted(unit: str) -> tuple[Decimal, str]:
    """How many units make one, and the unit's words without the number."""
    found = _COUNT.match(unit)
    if not found:
        return Decimal(1), unit.strip()
    number = Decimal(found[1].replace(",", ""))
    return EXACT.multiply(number, Decimal(_SCALE[found[2].upper()])), unit[found.end() :].strip()


def _bytes(size: str, provider: str) -> int:
    word = size.lower()
    if word.startswith("byte"):
        return 1
    power = _PREFIXES[word[0]]
    is_binary = word[1:3] == "ib" or word[2:4] == "bi" or provider in BINARY_PROVIDERS
    gigabyte = BYTES_PER_GIB if is_binary else BYTES_PER_GB
    step = 1024 if is_binary else 1000
    return int(gigabyte * step ** (power - 3)) if power >= 3 else int(step**power)


def _sized(size_bytes: Decimal, time: str | None) -> UnitMeaning:
    if time is None:
        return UnitMeaning(size_bytes=size_bytes)
    terabytes = EXACT.divide(size_bytes, Decimal(BYTES_PER_TB))
    kind = time[0].lower()
    if time.lower().startswith("mo"):
        return UnitMeaning(tb_months=terabytes)
    seconds = 86_400 if kind == "d" else _SECONDS[kind]
    return UnitMeaning(tb_seconds=EXACT.multiply(terabytes, Decimal(seconds)))
