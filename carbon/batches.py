"""The order of an agent's batches: each (boot, sequence) once, gaps noted, two live boots refused.

A repeat gets its first answer again. What the batch brought is stored with the note about it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import F, Max, QuerySet
from django.db.models.functions import Coalesce

from carbon.adapters.agent_batches import AgentBatch
from carbon.attribution import instant_of
from carbon.doors import accept, ensure_sender
from carbon.models import Sender, SenderBatch, SenderGap
from runs.records import SiteRecord

LIVE: Final = timedelta(minutes=10)  # a boot that was heard of so lately still runs
LOOKED_AT: Final = 200  # of the latest batches of the other boot
KEPT: Final = timedelta(days=14)  # replays come within minutes; readings are safe in any case
SHOWN_ERROR: Final = 400


class BatchConflictError(Exception):
    """A batch that contradicts what the agent sent before; nothing of it is stored."""

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The answer to a batch."""

    document: Mapping[str, Any]
    repeated: bool = False


def take_batch(site: SiteRecord, batch: AgentBatch, *, sha256: bytes, now: datetime) -> Receipt:
    """Store a batch, committed on return; the same batch again adds nothing.

    Raises:
        BatchConflictError: the same number with other bytes, a number that goes back, or two boots
            that send for the same time.
    """
    with transaction.atomic():
        sender = _lock_sender(site, batch, now=now)
        of_boot = SenderBatch.objects.filter(sender=sender, boot_id=batch.boot)
        known = of_boot.filter(sequence=batch.sequence).first()
        if known is not None:
            return _repeated(known, sha256)
        last: int | None = of_boot.aggregate(last=Max("sequence"))["last"]
        goes_back = last is not None and batch.sequence < last
        if goes_back and not _fill_gap(sender, batch, now=now):
            raise BatchConflictError(
                f"Sequence {batch.sequence} after {last} in one boot, and never missed.",
                code="sequence",
            )
        _refuse_twin(sender, batch, now=now)
        if not goes_back:
            _note_gap(sender, batch, last or 0, now=now)
        return _store(site, sender, batch, sha256=sha256, now=now)


def _lock_sender(site: SiteRecord, batch: AgentBatch, *, now: datetime) -> Sender:
    """The agent's row, locked: its batches are taken one after another."""
    sender_id = ensure_sender(site, Sender.Kind.AGENT, batch.name, version=batch.version, now=now)
    return Sender.objects.select_for_update(no_key=True).get(pk=sender_id)


def _repeated(known: SenderBatch, sha256: bytes) -> Receipt:
    if known.sha256 != sha256.hex():
        raise BatchConflictError(
            f"Sequence {known.sequence} of this boot was taken with other bytes.", code="batch_id"
        )
    return Receipt(document=known.answer, repeated=True)


def _fill_gap(sender: Sender, batch: AgentBatch, *, now: datetime) -> bool:
    """Whether the number was missed; then it no longer is, and what is left of the gap stays."""
    gap = SenderGap.objects.filter(
        sender=sender,
        boot_id=batch.boot,
        first_sequence__lte=batch.sequence,
        last_sequence__gte=batch.sequence,
        filled_at__isnull=True,
    ).first()
    if gap is None:
        return False
    for first, last in (
        (gap.first_sequence, batch.sequence - 1),
        (batch.sequence + 1, gap.last_sequence),
    ):
        if first <= last:
            _add_gap(sender, batch.boot, (first, last), seen_at=gap.seen_at)
    gap.first_sequence = gap.last_sequence = batch.sequence
    gap.filled_at = now
    gap.save(update_fields=["first_sequence", "last_sequence", "filled_at"])
    return True


def _note_gap(sender: Sender, batch: AgentBatch, last: int, *, now: datetime) -> None:
    """Note the numbers that were skipped; an agent counts its batches from 1."""
    if batch.sequence > last + 1:
        _add_gap(sender, batch.boot, (last + 1, batch.sequence - 1), seen_at=now)


def _add_gap(sender: Sender, boot: str, span: tuple[int, int], *, seen_at: datetime) -> None:
    SenderGap.objects.create(
        organisation_id=sender.organisation_id,
        sender=sender,
        boot_id=boot,
        first_sequence=span[0],
        last_sequence=span[1],
        seen_at=seen_at,
    )


def _refuse_twin(sender: Sender, batch: AgentBatch, *, now: datetime) -> None:
    """Refuse a boot whose readings lie between those of another one that is still heard of.

    After a restart they follow: what an agent's former life left behind is older than all of that.
    """
    if batch.boot == sender.boot_id or batch.first is None or batch.last is None:
        return
    latest = SenderBatch.objects.filter(sender=sender, boot_id=sender.boot_id).order_by("-sequence")
    low, high = instant_of(batch.first), instant_of(batch.last)
    for other in latest[:LOOKED_AT]:
        if other.received_at < now - LIVE:
            return
        if other.start and other.end and other.start < high and other.end > low:
            raise BatchConflictError(
                f"Two agents send as {sender.name}: boot {batch.boot} brings readings of a time "
                f"for which boot {sender.boot_id} sent. Give each its own name.",
                code="two_boots",
            )


def _store(
    site: SiteRecord, sender: Sender, batch: AgentBatch, *, sha256: bytes, now: datetime
) -> Receipt:
    """Store the body, the note about it, and where the sender stands."""
    accept(site, sender.pk, batch.brought, sha256=sha256, received_at=now)
    reasons: dict[str, int] = {}
    for one in batch.brought.set_aside:
        reasons[one.reason] = reasons.get(one.reason, 0) + 1
    answer = {
        "site": site.slug,
        "sequence": batch.sequence,
        "rows": batch.rows,
        "rejected": len(batch.brought.set_aside),
        "reasons": reasons,
    }
    SenderBatch.objects.create(
        organisation_id=site.organisation_id,
        sender=sender,
        boot_id=batch.boot,
        sequence=batch.sequence,
        sha256=sha256.hex(),
        version=batch.version,
        rows=batch.rows,
        rejected=len(batch.brought.set_aside),
        start=None if batch.first is None else instant_of(batch.first),
        end=None if batch.last is None else instant_of(batch.last),
        received_at=now,
        answer=answer,
    )
    if batch.boot != sender.boot_id and _is_older(sender, batch):
        Sender.objects.filter(pk=sender.pk).update(last_seen_at=now)
    else:
        Sender.objects.filter(pk=sender.pk).update(
            boot_id=batch.boot, last_sequence=batch.sequence, last_seen_at=now
        )
    return Receipt(document=answer)


def _is_older(sender: Sender, batch: AgentBatch) -> bool:
    """Whether the batch is left over from a life before the one that is known."""
    newest = SenderBatch.objects.filter(sender=sender, boot_id=sender.boot_id, start__isnull=False)
    known = newest.order_by("-sequence").first()
    if known is None or known.start is None or batch.last is None:
        return False
    return instant_of(batch.last) <= known.start


def _of_agent(site: SiteRecord, name: str) -> QuerySet[Sender]:
    return Sender.objects.filter(site_id=site.site_id, kind=Sender.Kind.AGENT, name=name)


def note_refused(site: SiteRecord, name: str, why: str, *, now: datetime) -> None:
    """Say on a known agent's row since when it is refused, and why."""
    _of_agent(site, name).update(
        refused_since=Coalesce("refused_since", now), last_error=why[:SHOWN_ERROR]
    )


def note_conflict(site: SiteRecord, name: str, why: str, *, now: datetime) -> None:
    """Say on the agent's row that another one uses its name: the last time, for both go on."""
    _of_agent(site, name).update(refused_since=now, last_error=why[:SHOWN_ERROR])


def note_taken(site: SiteRecord, name: str, *, now: datetime) -> None:
    """Clear a refusal that is over, not one of a minute ago: the other of two boots may go on."""
    _of_agent(site, name).filter(refused_since__lt=now - LIVE).update(
        refused_since=None, last_error=""
    )


def sweep_batches(*, now: datetime) -> int:
    """Forget batches that no agent will repeat, all but the last of each agent; say how many."""
    old = SenderBatch.objects.filter(received_at__lt=now - KEPT)
    swept, _of_each = old.exclude(
        boot_id=F("sender__boot_id"), sequence=F("sender__last_sequence")
    ).delete()
    return swept
