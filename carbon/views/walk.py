"""The auditor's walk: an hour of the books, then a device's hour down to readings and factors."""

from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from carbon.device_energy import DeviceHour, device_hours
from carbon.energy_pages import badge_of, chips_of, choices_of, shown_row
from carbon.energy_questions import HOUR, EnergyQuestion, QuestionError, hour_named, question_in
from carbon.energy_records import EnergyRow
from carbon.energy_selectors import asked_entries
from carbon.readers import READERS
from carbon.views.energy import refused
from carbon.walk_pages import grouped, versions_shown, whose
from carbon.walk_pieces import pieces_of_hour
from carbon.walk_selectors import (
    MAX_DEVICES,
    batches_of,
    deliveries_of,
    entries_of_hour,
    factor_lines,
    hour_table,
    readings_of,
    senders_named,
    summed,
    versions_of,
)
from projects.access import actor_of, require_scope
from runs.records import DeviceRecord
from runs.selectors import device_by_id, site_by_id


def _asked_hour(request: HttpRequest, hour: str) -> EnergyQuestion:
    """The question of an hour's address, limited to what the actor may see.

    Raises:
        QuestionError: a parameter cannot be read.
        Http404: no such hour, project, run or site.
    """
    actor = actor_of(request)
    require_scope(actor, *READERS)
    start = hour_named(hour)
    question = question_in(request.GET.dict(), actor)
    return replace(question, by="hour", start=start, end=start + HOUR)


@require_safe
def energy_hour(request: HttpRequest, hour: str) -> HttpResponse:
    """An hour: the devices, or their nodes, that make up its figure, and its factors."""
    try:
        question = _asked_hour(request, hour)
    except QuestionError as error:
        return refused(request, error)
    parts, devices = device_hours(question)
    by_node = len({part.device_id for part in parts}) > MAX_DEVICES
    table = hour_table(question, parts, devices, by_node=by_node)
    entries = entries_of_hour(question)
    context = {
        "tab": "energy",
        "question": question,
        "hour": question.start,
        "table": table,
        "total": shown_row(table.total, question),
        "badge": badge_of(question, table),
        "rows": [_shown(row, question, devices, by_node=by_node) for row in table.rows],
        "by_node": by_node,
        "entries": entries,
        "factors": factor_lines(
            question.organisation_id, (entry.factor_set_id for entry in entries)
        ),
        "day_url": _day_url(question),
        "chips": chips_of(replace(question, start=None, end=None)),
        **choices_of(question),
    }
    return render(request, "carbon/energy_hour.html", context)


def _shown(
    row: EnergyRow, question: EnergyQuestion, devices: dict[int, DeviceRecord], *, by_node: bool
) -> dict[str, Any]:
    """A device or node of the hour with its link down."""
    if by_node:
        url = f"{_hour_address(replace(question, node=row.key))}"
        return {"shown": shown_row(row, question, url), "node": row.key}
    address = reverse("energy_device", args=[f"{question.start:%Y-%m-%dT%H}", int(row.key)])
    url = f"{address}?{_kept(question)}"
    return {"shown": shown_row(row, question, url), "node": devices[int(row.key)].node}


def _kept(question: EnergyQuestion) -> str:
    kept = replace(question, start=None, end=None).written()
    return urlencode([pair for pair in kept if pair[0] != "by"])


def _hour_address(question: EnergyQuestion) -> str:
    return f"{reverse('energy_hour', args=[f'{question.start:%Y-%m-%dT%H}'])}?{_kept(question)}"


def _day_url(question: EnergyQuestion) -> str:
    """The day that the hour is part of."""
    start = question.start.replace(hour=0) if question.start else None
    day = replace(question, by="hour", start=start, end=start + 24 * HOUR if start else None)
    return f"{reverse('energy')}?{day.query()}"


@require_safe
def energy_device(request: HttpRequest, hour: str, device_id: int) -> HttpResponse:
    """A device's hour: its versions, the pieces that made it, who sent them, and the factors."""
    try:
        question = _asked_hour(request, hour)
    except QuestionError as error:
        return refused(request, error)
    device = device_by_id(question.organisation_id, device_id)
    if device is None:
        raise Http404("No such device.")
    parts = _parts(question, device)
    if question.allowed is not None and not parts:
        raise Http404("No such device.")
    return render(request, "carbon/energy_device.html", _device_context(question, device, parts))


def _parts(question: EnergyQuestion, device: DeviceRecord) -> list[DeviceHour]:
    """The device's hour by owner, as far as the question goes."""
    asked = replace(question, device=device.device_uuid, node="", site_id=device.site_id)
    return device_hours(asked)[0]


def _device_context(
    question: EnergyQuestion, device: DeviceRecord, parts: list[DeviceHour]
) -> dict[str, Any]:
    hour = question.start
    if hour is None:
        raise Http404("No such hour.")
    site = site_by_id(question.organisation_id, device.site_id)
    readings = readings_of(device.device_id, hour)
    sender_ids = {line.sender_id for line in readings}
    senders = senders_named(sender_ids)
    mine = asked_entries(replace(question, site_id=device.site_id, node="", device=""))
    sets = list(mine.values_list("factor_set_id", flat=True).distinct())
    whole = summed(parts, key="", name=device.device_uuid)
    versions = versions_of(device.device_id, hour)
    return {
        "tab": "energy",
        "question": question,
        "hour": hour,
        "device": device,
        "site": site,
        "parts": whose(question.organisation_id, parts),
        "total": shown_row(whole, question),
        "versions": versions_shown(versions),
        "pieces": pieces_of_hour(
            device, hour, readings, senders, versions[0] if versions else None
        ),
        "reading_groups": grouped(readings, senders),
        "batches": batches_of(question.organisation_id, sender_ids, hour),
        "deliveries": deliveries_of(device.site_id, readings),
        "factors": factor_lines(question.organisation_id, sets),
        "hour_url": _hour_address(question),
        "day_url": _day_url(question),
        **choices_of(question),
    }
