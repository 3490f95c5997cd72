"""The pieces of energy that one device's hour was made of, by the plain rules of formulae.metering.

Estimates are not among them: they are what no reading says.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from typing import Final

from carbon.attribution import instant_of, microsecond_of
from carbon.energy_records import ReadingLine
from carbon.models import EnergyHour, Sender
from carbon.site_factors import dated_factors, max_gap_s
from carbon.walk_pages import reading_name, sender_name
from formulae.allocation import split_integer
from formulae.metering import (
    Piece,
    cascade,
    counter_step,
    most_millijoule,
    outside_covered,
    shortest_microsecond,
)
from formulae.units import MICROSECOND_PER_S, MILLIJOULE_PER_J, S_PER_HOUR, kwh_from_millijoule
from runs.records import DeviceRecord

HOUR_MICROSECOND: Final = S_PER_HOUR * MICROSECOND_PER_S
PRECEDENCE: Final = ("agent", "remote_write", "promql", "api", "file")
ASSUMED_LIMIT_W: Final = 5_000.0
MAX_SHOWN: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class HourPiece:
    """Energy between two instants of the hour, what it was made of, and by whom."""

    start: datetime
    end: datetime
    energy_millijoule: int
    method_name: str
    quality: str  # measured, spread, reset
    sender_name: str

    @property
    def energy_kwh(self) -> float:
        return kwh_from_millijoule(self.energy_millijoule)


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceTable:
    """The pieces of an hour and what the hour's version says that they should sum to."""

    pieces: tuple[HourPiece, ...]
    expected_millijoule: int | None

    @property
    def shown(self) -> tuple[HourPiece, ...]:
        return self.pieces[:MAX_SHOWN]

    @property
    def total_kwh(self) -> float:
        return kwh_from_millijoule(sum(piece.energy_millijoule for piece in self.pieces))

    @property
    def adds_up(self) -> bool:
        return self.expected_millijoule == sum(piece.energy_millijoule for piece in self.pieces)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tier:
    """Pieces of one kind and sender, in the order of precedence."""

    method: str
    quality: str
    sender_id: int
    pieces: Sequence[Piece]


def pieces_of_hour(
    device: DeviceRecord,
    hour: datetime,
    readings: Sequence[ReadingLine],
    senders: Mapping[int, Sender],
    version: EnergyHour | None,
) -> PieceTable:
    """The measured and spread pieces inside an hour, from the readings as they are now."""
    max_gap = int(max_gap_s(dated_factors(device.site_id)) * MICROSECOND_PER_S)
    limit_w = device.power_limit_w or ASSUMED_LIMIT_W
    by_sender = _by_sender(readings, senders)
    placed, spread, resets = _counter_tiers(by_sender, max_gap=max_gap, limit_w=limit_w)
    tiers = [*placed, *spread, *_interval_tiers(by_sender), *_power_tiers(by_sender, max_gap)]
    start = microsecond_of(hour)
    counted, cover = cascade([_in_the_hour(tier, start) for tier in tiers])
    found = list(zip(tiers, counted, strict=True))
    for tier in resets:
        of_hour = _in_the_hour(tier, start)
        found.append((tier, [part for piece in of_hour for part in outside_covered(piece, cover)]))
    pieces = [_piece(tier, part, senders) for tier, parts in found for part in parts]
    expected = version.measured_millijoule + version.spread_millijoule if version else None
    ordered = sorted(pieces, key=lambda piece: (piece.start, piece.end))
    return PieceTable(pieces=tuple(ordered), expected_millijoule=expected)


def _piece(tier: _Tier, part: Piece, senders: Mapping[int, Sender]) -> HourPiece:
    start, end, energy_millijoule = part
    return HourPiece(
        start=instant_of(start),
        end=instant_of(end),
        energy_millijoule=energy_millijoule,
        method_name=reading_name(tier.method),
        quality=tier.quality,
        sender_name=sender_name(senders.get(tier.sender_id)),
    )


Grouped = dict[int, dict[str, list[ReadingLine]]]


def _by_sender(readings: Iterable[ReadingLine], senders: Mapping[int, Sender]) -> Grouped:
    """Readings by sender, the first in precedence first, and by kind."""

    def rank(sender_id: int) -> tuple[int, int]:
        sender = senders.get(sender_id)
        return (PRECEDENCE.index(sender.kind if sender else "file"), sender_id)

    ordered = sorted(readings, key=lambda line: (*rank(line.sender_id), line.kind, line.start))
    found: Grouped = {}
    for line in ordered:
        found.setdefault(line.sender_id, {}).setdefault(line.kind, []).append(line)
    return found


def _counter_tiers(
    by_sender: Grouped, *, max_gap: int, limit_w: float
) -> tuple[list[_Tier], list[_Tier], list[_Tier]]:
    """Counters read in time, across a gap, and since they began again."""
    every = sorted(
        {
            microsecond_of(line.start)
            for kinds in by_sender.values()
            for line in kinds.get("counter", ())
        }
    )
    holes = [(low, high) for low, high in pairwise(every) if high - low > max_gap]
    tiers: tuple[list[_Tier], list[_Tier], list[_Tier]] = ([], [], [])
    for sender_id, kinds in by_sender.items():
        sorts: dict[str, list[Piece]] = {"measured": [], "spread": [], "reset": []}
        for before, after in pairwise(kinds.get("counter", ())):
            is_long = after.start - before.start > timedelta(microseconds=max_gap)
            if not is_long or _crosses_a_hole(before, after, holes, max_gap):
                quality, piece = _counted(before, after, limit_w=limit_w)
                if piece is not None:
                    sorts["spread" if is_long and quality == "measured" else quality].append(piece)
        for found, (quality, pieces) in zip(tiers, sorts.items(), strict=True):
            found.append(
                _Tier(method="counter", quality=quality, sender_id=sender_id, pieces=pieces)
            )
    return tiers


def _counted(
    before: ReadingLine, after: ReadingLine, *, limit_w: float
) -> tuple[str, Piece | None]:
    """What a counter counted between two readings; None where no device can have drawn it."""
    start, end = microsecond_of(before.start), microsecond_of(after.start)
    energy, began_again = counter_step(
        (int(before.value), before.epoch), (int(after.value), after.epoch)
    )
    if energy > most_millijoule(end - start, limit_w=limit_w):
        return "measured", None
    if not began_again:
        return "measured", (start, end, energy)
    if not energy:
        return "reset", None
    taken = shortest_microsecond(energy, limit_w=limit_w, at_most=end - start)
    return "reset", (end - taken, end, energy)


def _crosses_a_hole(
    before: ReadingLine, after: ReadingLine, holes: Iterable[tuple[int, int]], max_gap: int
) -> bool:
    """Whether a pair spans one hole in all counters, read right before and right after it."""
    start, end = microsecond_of(before.start), microsecond_of(after.start)
    return any(
        start <= hole[0] <= start + max_gap and end - max_gap <= hole[1] <= end for hole in holes
    )


def _interval_tiers(by_sender: Grouped) -> list[_Tier]:
    """Metered intervals; of one longer than an hour the place in time is not known."""
    tiers = []
    for sender_id, kinds in by_sender.items():
        lines = kinds.get("interval", ())
        for long, group in groupby(sorted(lines, key=_is_long), key=_is_long):
            pieces = [
                (
                    microsecond_of(line.start),
                    microsecond_of(line.end or line.start),
                    int(line.value),
                )
                for line in group
            ]
            quality = "spread" if long else "measured"
            tiers.append(
                _Tier(method="interval", quality=quality, sender_id=sender_id, pieces=pieces)
            )
    return tiers


def _is_long(line: ReadingLine) -> bool:
    end = line.end or line.start
    return microsecond_of(end) - microsecond_of(line.start) > HOUR_MICROSECOND


def _power_tiers(by_sender: Grouped, max_gap: int) -> list[_Tier]:
    """Trapezoids between neighbouring power readings no further apart than the longest gap."""
    tiers = []
    for sender_id, kinds in by_sender.items():
        pieces = []
        for before, after in pairwise(kinds.get("power", ())):
            start, end = microsecond_of(before.start), microsecond_of(after.start)
            if end - start <= max_gap:
                duration_s = (end - start) / MICROSECOND_PER_S
                energy_j = (before.value + after.value) / 2 * duration_s
                pieces.append((start, end, round(energy_j * MILLIJOULE_PER_J)))
        if pieces:
            tiers.append(
                _Tier(method="power", quality="measured", sender_id=sender_id, pieces=pieces)
            )
    return tiers


def _in_the_hour(tier: _Tier, hour: int) -> list[Piece]:
    """The parts of a tier's pieces that lie in the hour: they are split before they are cut."""
    return [part for piece in tier.pieces for part in _in_hour(piece, hour)]


def _in_hour(piece: Piece, hour: int) -> list[Piece]:
    """The part of a piece that lies in the hour, its energy by time and largest remainder."""
    start, end, energy_millijoule = piece
    borders = range(start // HOUR_MICROSECOND + 1, -(-end // HOUR_MICROSECOND))
    cuts = [start, *(border * HOUR_MICROSECOND for border in borders), end]
    spans = list(pairwise(cuts))
    parts = split_integer(energy_millijoule, [high - low for low, high in spans])
    return [
        (low, high, part)
        for (low, high), part in zip(spans, parts, strict=True)
        if low // HOUR_MICROSECOND * HOUR_MICROSECOND == hour
    ]
