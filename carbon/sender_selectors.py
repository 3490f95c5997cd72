"""Reads of senders: who sends what, how far behind, what is missing, what waits to be booked."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db.models import Count, F, Sum

from carbon.backlog import Backlog, backlogs
from carbon.models import IntakeBody, Sender, SenderBatch, SenderGap
from carbon.now_records import SenderHealth
from carbon.walk_pages import sender_kind_name
from runs.selectors import sites

SILENT_AFTER: Final = timedelta(minutes=10)
LIVE_KINDS: Final = (Sender.Kind.AGENT, Sender.Kind.REMOTE_WRITE, Sender.Kind.PROMQL)


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderRow:
    """A sender and how it does; `lag_s`: from the newest reading to now."""

    sender_id: int
    site_slug: str
    site_name: str
    kind: str
    kind_name: str
    name: str
    version: str
    state: str  # ok, silent, refused, gaps
    last_seen_at: datetime
    last_reading_at: datetime | None
    lag_s: float | None
    rows: int
    rejected: int
    duplicates: int
    ignored: int
    dropped: int
    gaps: int
    missing_batches: int
    refused_since: datetime | None
    last_error: str
    waiting: int

    @property
    def lag_days(self) -> float | None:
        return None if self.lag_s is None else timedelta(seconds=self.lag_s) / timedelta(days=1)


def sender_rows(organisation_id: UUID, *, now: datetime, site: str = "") -> list[SenderRow]:
    """The senders of an organisation, those with trouble first."""
    found = Sender.objects.filter(organisation_id=organisation_id).select_related("site")
    if site:
        found = found.filter(site__slug=site)
    gaps, waiting = _gaps(organisation_id), _waiting(organisation_id)
    rows = [
        _row(one, now=now, gap=gaps.get(one.pk, (0, 0)), waiting=waiting.get(one.pk, 0))
        for one in found
    ]
    order = {"refused": 0, "gaps": 1, "silent": 2, "ok": 3}
    return sorted(rows, key=lambda row: (order[row.state], row.site_name, row.name))


def _gaps(organisation_id: UUID) -> dict[int, tuple[int, int]]:
    """Open gaps and missing batches by sender."""
    missing = Sum(F("last_sequence") - F("first_sequence") + 1)
    rows = SenderGap.objects.filter(organisation_id=organisation_id, filled_at__isnull=True)
    counted = rows.values("sender_id").annotate(gaps=Count("pk"), missing=missing).order_by()
    return {row["sender_id"]: (row["gaps"], row["missing"]) for row in counted}


def _waiting(organisation_id: UUID) -> dict[int, int]:
    """Bodies that wait to be booked by sender."""
    rows = IntakeBody.objects.filter(organisation_id=organisation_id).values("sender_id")
    return {row["sender_id"]: row["bodies"] for row in rows.annotate(bodies=Count("pk")).order_by()}


def _row(one: Sender, *, now: datetime, gap: tuple[int, int], waiting: int) -> SenderRow:
    lag_s = (now - one.last_reading_at).total_seconds() if one.last_reading_at else None
    gaps, missing = gap
    return SenderRow(
        sender_id=one.pk,
        site_slug=one.site.slug,
        site_name=one.site.name,
        kind=one.kind,
        kind_name=sender_kind_name(one.kind),
        name=one.name,
        version=one.version,
        state=_state(one, now=now, gaps=gaps),
        last_seen_at=one.last_seen_at,
        last_reading_at=one.last_reading_at,
        lag_s=None if lag_s is None else max(0.0, lag_s),
        rows=one.rows,
        rejected=one.rejected,
        duplicates=one.duplicates,
        ignored=one.ignored,
        dropped=one.dropped,
        gaps=gaps,
        missing_batches=missing,
        refused_since=one.refused_since,
        last_error=one.last_error,
        waiting=waiting,
    )


def _state(one: Sender, *, now: datetime, gaps: int) -> str:
    if one.refused_since is not None:
        return "refused"
    if gaps:
        return "gaps"
    is_silent = one.kind in LIVE_KINDS and now - one.last_seen_at > SILENT_AFTER
    return "silent" if is_silent else "ok"


def health_by_site(organisation_id: UUID, *, now: datetime) -> dict[UUID, SenderHealth]:
    """How the senders of each site do; sites without any have none."""
    gaps, waiting = _gaps(organisation_id), _waiting(organisation_id)
    states: dict[UUID, list[tuple[str, int]]] = defaultdict(list)
    for one in Sender.objects.filter(organisation_id=organisation_id):
        state = _state(one, now=now, gaps=gaps.get(one.pk, (0, 0))[0])
        states[one.site_id].append((state, waiting.get(one.pk, 0)))
    health: dict[UUID, SenderHealth] = defaultdict(SenderHealth)
    for site_id, found in states.items():
        words = [state for state, _bodies in found]
        health[site_id] = SenderHealth(
            senders=len(words),
            silent=words.count("silent"),
            refused=words.count("refused"),
            gaps=words.count("gaps"),
            waiting=sum(bodies for _state, bodies in found),
        )
    return health


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingAtSite:
    """A site at which much waits to be booked."""

    site_name: str
    backlog: Backlog


def much_waiting(organisation_id: UUID) -> list[WaitingAtSite]:
    """The sites whose doors are shut, or half way to it."""
    high = [one for one in backlogs(organisation_id) if one.is_high]
    names = {one.site_id: one.name for one in sites(organisation_id)} if high else {}
    return [
        WaitingAtSite(site_name=names[one.site_id], backlog=one)
        for one in high
        if one.site_id in names
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderDetail:
    """A sender with its last batches and its gaps."""

    row: SenderRow
    batches: list[SenderBatch]
    gaps: list[SenderGap]


def sender_detail(organisation_id: UUID, sender_id: int, *, now: datetime) -> SenderDetail | None:
    """One sender; None when there is none of this id in the organisation."""
    one = Sender.objects.filter(organisation_id=organisation_id, pk=sender_id)
    found = one.select_related("site").first()
    if found is None:
        return None
    open_gaps = _gaps(organisation_id).get(found.pk, (0, 0))
    row = _row(found, now=now, gap=open_gaps, waiting=_waiting(organisation_id).get(found.pk, 0))
    batches = SenderBatch.objects.filter(sender_id=found.pk).order_by("-received_at")
    gaps = SenderGap.objects.filter(sender_id=found.pk).order_by("-seen_at")
    return SenderDetail(row=row, batches=list(batches[:50]), gaps=list(gaps[:50]))
