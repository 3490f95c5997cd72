"""The job that pulls a source: lists its units, fetches what is new whole, hands it in."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from billing.connectors import Connector, ConnectorError, ObjectRef, Unit, connector_for
from billing.models import Delivery, InvoiceTotal, Pull, PulledUnit, Source
from billing.records import ChargesRefusedError
from billing.services.pull_requests import connection_of
from billing.services.receiving import IncomingFile, NewDelivery, Receipt, receive_files
from formulae.periods import month_from_label
from jobs.records import JobContext, PermanentJobError
from projects.access import system_actor
from projects.records import Actor
from projects.trail import note

FETCH_TRIES: Final = 3  # of a unit that changes under our hands
MEBIBYTE: Final = 2**20
SHOWN_PROBLEMS: Final = 50


@dataclass(slots=True, kw_only=True)
class _Work:
    """A pull on its way: what it needs at hand, and what came of it so far."""

    context: JobContext
    source: Source
    pull: Pull
    connector: Connector
    actor: Actor
    bytes_total: int = 0
    known: int = 0
    delivered: list[dict[str, Any]] = field(default_factory=list)
    problems: list[dict[str, Any]] = field(default_factory=list)


def pull_source(context: JobContext) -> dict[str, Any]:
    """Pull a source once. Running it again fetches only what is not in yet.

    Raises:
        PermanentJobError: the source cannot be read; trying again will not help.
        ConnectorError: the store failed; the job is tried again.
    """
    source = Source.objects.get(
        pk=UUID(context.payload["source_id"]), organisation_id=context.organisation_id
    )
    pull = _begin(context, source)
    actor = system_actor(source.organisation_id, f"pull of {source.name}"[:200])
    try:
        work = _Work(
            context=context,
            source=source,
            pull=pull,
            connector=connector_for(connection_of(source)),
            actor=actor,
        )
        _fetch_all(work)
    except ConnectorError as error:
        _fail(context, source, pull, error)
        if error.permanent:
            raise PermanentJobError(_sentence(error)) from error
        raise
    return _end(work)


def _begin(context: JobContext, source: Source) -> Pull:
    """Note that the source is looked at; pulls that were killed before are over."""
    now = timezone.now()
    with transaction.atomic():
        context.assert_still_mine()
        Source.objects.filter(pk=source.pk).update(tried_at=now)
        stale = Pull.objects.filter(source=source, state=Pull.State.RUNNING)
        stale.exclude(job_id=context.job_id).update(
            state=Pull.State.FAILED,
            ended_at=now,
            error={"code": "interrupted", "message": _("The pull was interrupted."), "object": ""},
        )
        pull, _is_new = Pull.objects.update_or_create(
            source=source,
            job_id=context.job_id,
            defaults={
                "organisation_id": source.organisation_id,
                "state": Pull.State.RUNNING,
                "error": None,
                "ended_at": None,
            },
        )
    return pull


def _fetch_all(work: _Work) -> None:
    """Look at every unit; the whole listing stands before the first is fetched."""
    work.context.report(0, None, _("Listing"))
    units = list(work.connector.units(work.source.watermark))
    wanted = [unit for unit in units if unit.problem is None and not _is_known(work, unit)]
    for unit in units:
        if unit.problem is not None:
            _note_problem(work, unit, unit.problem)
    work.pull.objects_listed = sum(len(unit.objects) for unit in units)
    work.bytes_total = sum(one.size or 0 for unit in wanted for one in unit.objects)
    for unit in wanted:
        try:
            _deliver(work, unit)
        except ConnectorError as error:
            if not error.is_incomplete:
                raise
            _note_problem(work, unit, error)
        except ChargesRefusedError as refusal:
            _note_refused(work, unit, refusal)


def _is_known(work: _Work, unit: Unit) -> bool:
    """Whether this state of the unit is in, or was refused and nobody asks for it again."""
    pulled = (
        PulledUnit.objects.filter(source=work.source, key=unit.key, fingerprint=unit.fingerprint)
        .select_related("delivery")
        .first()
    )
    if pulled is None:
        return False
    if pulled.delivery is None or pulled.delivery.state == Delivery.State.REFUSED:
        if work.context.payload.get("again"):
            return False
        _note_problem(work, unit, _was_refused(pulled.delivery))
    work.known += 1
    return True


def _was_refused(delivery: Delivery | None) -> ConnectorError:
    refusal = (delivery.refusal if delivery is not None else None) or {}
    return ConnectorError(
        "refused",
        _("this bill was refused: {reason}").format(
            reason=refusal.get("reason") or _("see its import")
        ),
        object=str(refusal.get("file") or ""),
    )


def _deliver(work: _Work, unit: Unit) -> None:
    """Fetch every object of a unit and hand them in as one; a unit that changes is listed anew."""
    for attempt in range(1, FETCH_TRIES + 1):
        try:
            receipt = _receive(work, unit)
            break
        except ConnectorError as error:
            if not error.is_incomplete or attempt == FETCH_TRIES:
                raise
            unit = _listed_anew(work, unit, error)
    _note_delivered(work, unit, receipt)


def _listed_anew(work: _Work, unit: Unit, error: ConnectorError) -> Unit:
    """The unit as it is now.

    Raises:
        ConnectorError: it is gone, or not whole.
    """
    for one in work.connector.units(work.source.watermark):
        if one.key == unit.key:
            if one.problem is not None:
                raise one.problem
            return one
    raise error


def _receive(work: _Work, unit: Unit) -> Receipt:
    files = [IncomingFile(name=one.name, chunks=_chunks(work, one)) for one in unit.objects]
    return receive_files(
        work.actor,
        NewDelivery(
            source_name=work.source.name,
            source=work.source,
            files=files,
            periods=[unit.period] if unit.period else [],
            version_at=unit.version_at,
            origin={"unit": unit.key, "fingerprint": unit.fingerprint, **unit.origin},
        ),
    )


def _chunks(work: _Work, one: ObjectRef) -> Iterator[bytes]:
    """The object's bytes, counted on their way."""
    message = _("Fetching {name}").format(name=one.name)
    for chunk in work.connector.open(one):
        work.pull.bytes_fetched += len(chunk)
        total = max(work.bytes_total, work.pull.bytes_fetched) if work.bytes_total else None
        work.context.report(work.pull.bytes_fetched, total, message)
        yield chunk
    work.pull.objects_fetched += 1


def _note_delivered(work: _Work, unit: Unit, receipt: Receipt) -> None:
    with transaction.atomic():
        work.context.assert_still_mine()
        PulledUnit.objects.update_or_create(
            source=work.source,
            key=unit.key,
            fingerprint=unit.fingerprint,
            defaults={
                "organisation_id": work.source.organisation_id,
                "delivery_id": receipt.delivery_id,
            },
        )
        _merge_watermark(work, unit.watermark)
        if unit.stated_total is not None and unit.period:
            _keep_total(work, unit)
        _save_progress(work.pull)
    work.delivered.append(
        {
            "key": unit.key,
            "period": unit.period,
            "objects": len(unit.objects),
            "delivery_id": str(receipt.delivery_id),
            "already_imported": receipt.already_imported,
        }
    )


def _merge_watermark(work: _Work, watermark: Mapping[str, Any]) -> None:
    if not watermark:
        return
    source = Source.objects.select_for_update().get(pk=work.source.pk)
    source.watermark = {**source.watermark, **watermark}
    source.save(update_fields=["watermark"])
    work.source.watermark = source.watermark


def _keep_total(work: _Work, unit: Unit) -> None:
    """Keep what the manifest says the month comes to; a figure that a person entered stays."""
    stated = unit.stated_total
    if stated is None or unit.period is None:
        return
    key = {
        "source": work.source,
        "start": month_from_label(unit.period).start.date(),
        "invoice_id": stated.invoice_id[:120],
        "currency": stated.currency,
    }
    known = InvoiceTotal.objects.filter(**key, withdrawn_at=None).first()
    if known is not None:
        if known.origin == InvoiceTotal.Origin.ENTERED or known.amount == stated.amount:
            return
        InvoiceTotal.objects.filter(pk=known.pk).update(withdrawn_at=timezone.now())
    total = InvoiceTotal.objects.create(
        organisation_id=work.source.organisation_id,
        amount=stated.amount,
        origin=InvoiceTotal.Origin.MANIFEST,
        note=unit.key,
        recorded_by=work.actor.label,
        **key,
    )
    after = {"amount": format(stated.amount, "f"), "currency": stated.currency}
    note(work.actor, "invoice_total.take", subject=("invoice_total", total.pk), after=after)


def _note_problem(work: _Work, unit: Unit, error: ConnectorError) -> None:
    work.problems.append({"key": unit.key, "period": unit.period, **_document(error)})


def _note_refused(work: _Work, unit: Unit, refusal: ChargesRefusedError) -> None:
    """Remember what was refused at the door, so that it is not fetched again every time."""
    PulledUnit.objects.update_or_create(
        source=work.source,
        key=unit.key,
        fingerprint=unit.fingerprint,
        defaults={"organisation_id": work.source.organisation_id, "delivery": None},
    )
    error = ConnectorError(refusal.code, refusal.sentence, permanent=True)
    _note_problem(work, unit, error)


def _end(work: _Work) -> dict[str, Any]:
    """Note how the pull went, and how the source is."""
    is_new = any(not one["already_imported"] for one in work.delivered)
    pull, source = work.pull, work.source
    if work.problems:
        pull.state = Pull.State.INCOMPLETE
    else:
        pull.state = Pull.State.OK if is_new else Pull.State.NOTHING_NEW
    pull.report = {
        "units": work.delivered,
        "problems": work.problems[:SHOWN_PROBLEMS],
        "problems_count": len(work.problems),
        "known": work.known,
    }
    first = work.problems[0] if work.problems else None
    pull.error = {name: first[name] for name in ("code", "message", "object")} if first else None
    with transaction.atomic():
        work.context.assert_still_mine()
        _save_end(pull)
        state = Source.State.INCOMPLETE if first else Source.State.OK
        _set_state(source, state, pull.error, actor=work.actor)
    return {
        "pull_id": str(pull.pk),
        "state": pull.state,
        "deliveries": [one["delivery_id"] for one in work.delivered],
    }


def _fail(context: JobContext, source: Source, pull: Pull, error: ConnectorError) -> None:
    """Note why the source could not be read; what is published stays as it is."""
    is_over = error.permanent or context.attempt >= settings.JOB_MAX_ATTEMPTS
    pull.error = _document(error)
    if is_over:
        pull.state = Pull.State.FAILED
    actor = system_actor(source.organisation_id, f"pull of {source.name}"[:200])
    with transaction.atomic():
        context.assert_still_mine()
        if is_over:
            _save_end(pull)
        else:
            _save_progress(pull)
        state = Source.State.BROKEN if is_over else source.state
        _set_state(source, Source.State(state), pull.error, actor=actor)


def _set_state(
    source: Source, state: Source.State, error: Mapping[str, Any] | None, *, actor: Actor
) -> None:
    """Say how the source is; its trail tells when that changed."""
    now = timezone.now()
    before = Source.objects.select_for_update().get(pk=source.pk).state
    changes: dict[str, Any] = {"state": state, "last_error": None}
    if error is not None:
        changes["last_error"] = {**error, "at": _iso(now)}
    if state == Source.State.OK:
        changes["succeeded_at"] = now
    Source.objects.filter(pk=source.pk).update(**changes)
    if before != state:
        after = {"state": str(state), "error": (error or {}).get("message")}
        note(
            actor,
            "source.state",
            subject=("source", source.pk),
            before={"state": before},
            after=after,
        )


def _iso(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")


def _document(error: ConnectorError) -> dict[str, Any]:
    found = {"code": error.code, "message": error.message, "object": error.object}
    if error.missing_permission:
        found["missing_permission"] = error.missing_permission
    return found


def _sentence(error: ConnectorError) -> str:
    if not error.missing_permission:
        return str(error)
    missing = _("missing permission: {what}").format(what=error.missing_permission)
    return f"{error}; {missing}"


def _save_progress(pull: Pull) -> None:
    pull.save(update_fields=["objects_listed", "objects_fetched", "bytes_fetched", "error"])


def _save_end(pull: Pull) -> None:
    pull.ended_at = timezone.now()
    pull.save()
