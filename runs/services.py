"""Writes of what ran where: sites, devices, runs, assignments; all audited."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from audit import services as audit
from projects.records import Actor
from runs.catalogue import accelerator_from_text
from runs.models import Assignment, Device, Node, Run, Site
from runs.records import RunRecord, SiteRecord
from runs.selectors import accelerator, site_by_slug


class RunsError(ValueError):
    """A change that cannot be made; the message says what to do, for people."""


def _note(
    actor: Actor, action: str, object_type: str, object_id: str, before: Any, after: Any
) -> None:
    """Write the change into the trail, in its own transaction."""
    audit.record(
        organisation_id=actor.organisation_id,
        actor_label=actor.label,
        user_id=actor.user_id,
        token_id=actor.token_id,
        ip=actor.ip,
        action=action,
        object_type=object_type,
        object_id=object_id,
        before=before,
        after=after,
    )


def ensure_site(actor: Actor, *, slug: str, name: str = "") -> SiteRecord:
    """The site with this slug, created bare (no region, no factors) when there is none."""
    found = site_by_slug(actor.organisation_id, slug)
    if found is not None:
        return found
    return save_site(
        actor,
        SiteRecord(
            site_id=UUID(int=0),
            organisation_id=actor.organisation_id,
            slug=slug,
            name=name or slug,
        ),
    )


@transaction.atomic
def save_site(actor: Actor, wanted: SiteRecord) -> SiteRecord:
    """Create the site or change the one with this slug; the id in `wanted` is ignored."""
    before = site_by_slug(actor.organisation_id, wanted.slug)
    fields = {
        "name": wanted.name,
        "provider": wanted.provider,
        "region": wanted.region,
        "country": wanted.country.upper(),
        "state": wanted.state.upper(),
        "time_zone": wanted.time_zone or "UTC",
    }
    site, created = Site.objects.update_or_create(
        organisation_id=actor.organisation_id, slug=wanted.slug, defaults=fields
    )
    after = replace(wanted, site_id=site.pk, organisation_id=site.organisation_id, **fields)
    if after != before:
        action = "site.created" if created else "site.changed"
        _note(actor, action, "site", str(site.pk), before and asdict(before), asdict(after))
    return after


def ensure_devices(site: SiteRecord, devices: Iterable[tuple[str, str, str]]) -> dict[str, int]:
    """The keys of the devices (uuid, node, model) by UUID; unknown ones are created at the site.

    A device that stands at another site keeps its site and is left out of the answer.
    """
    wanted = {uuid: (node, model) for uuid, node, model in devices}
    known = {
        device.uuid: device
        for device in Device.objects.filter(
            organisation_id=site.organisation_id, uuid__in=list(wanted)
        )
    }
    missing = {uuid: about for uuid, about in wanted.items() if uuid not in known}
    if missing:
        _create_devices(site, missing)
        return ensure_devices(site, ((uuid, *about) for uuid, about in wanted.items()))
    _learn(site, known, wanted)
    return {uuid: device.pk for uuid, device in known.items() if device.site_id == site.site_id}


def ensure_nodes(site: SiteRecord, names: Iterable[str]) -> dict[str, int]:
    """The keys of a site's nodes by name; unknown ones are created."""
    wanted = sorted(set(names))
    of_site = Node.objects.filter(site_id=site.site_id, name__in=wanted)
    known = dict(of_site.values_list("name", "pk"))
    if len(known) == len(wanted):
        return known
    Node.objects.bulk_create(
        [
            Node(organisation_id=site.organisation_id, site_id=site.site_id, name=name)
            for name in wanted
            if name not in known
        ],
        ignore_conflicts=True,
    )
    return dict(of_site.values_list("name", "pk"))


def _create_devices(site: SiteRecord, missing: Mapping[str, tuple[str, str]]) -> None:
    """Create devices and the nodes that hold them; another sender may do the same meanwhile."""
    nodes = ensure_nodes(site, {node for node, _model in missing.values() if node})
    Device.objects.bulk_create(
        [
            Device(
                organisation_id=site.organisation_id,
                site_id=site.site_id,
                node_id=nodes.get(node),
                uuid=uuid,
                model=model,
                accelerator_key=accelerator_from_text(model) or "",
            )
            for uuid, (node, model) in sorted(missing.items())
        ],
        ignore_conflicts=True,
    )


def _learn(
    site: SiteRecord, known: Mapping[str, Device], wanted: Mapping[str, tuple[str, str]]
) -> None:
    """Fill in node and model of the site's devices that were first seen without them."""
    bare = {uuid: node for uuid, (node, _) in wanted.items() if node and not known[uuid].node_id}
    nodes = ensure_nodes(site, set(bare.values())) if bare else {}
    learned = []
    for uuid, (node, model) in wanted.items():
        device = known[uuid]
        learns_node = uuid in bare and device.site_id == site.site_id
        if learns_node:
            device.node_id = nodes[node]
        if model and not device.model:
            device.model = model
            device.accelerator_key = device.accelerator_key or accelerator_from_text(model) or ""
            learned.append(device)
        elif learns_node:
            learned.append(device)
    if learned:
        Device.objects.bulk_update(learned, ["model", "accelerator_key", "node"])


@transaction.atomic
def change_device(
    actor: Actor, device_uuid: str, *, model: str, accelerator_key: str, max_power_w: float | None
) -> None:
    """Set what a device is."""
    device = Device.objects.select_for_update().get(
        organisation_id=actor.organisation_id, uuid=device_uuid
    )
    if accelerator_key:
        accelerator(accelerator_key, actor.organisation_id)
    before = _device_document(device)
    device.model, device.accelerator_key, device.max_power_w = model, accelerator_key, max_power_w
    after = _device_document(device)
    if before != after:
        device.save(update_fields=["model", "accelerator_key", "max_power_w"])
        _note(actor, "device.changed", "device", device.uuid, before, after)


def _device_document(device: Device) -> dict[str, Any]:
    return {
        "model": device.model,
        "accelerator_key": device.accelerator_key,
        "max_power_w": device.max_power_w,
    }


@transaction.atomic
def save_run(actor: Actor, wanted: RunRecord) -> RunRecord:
    """Create the run, or change the one with this slug in the project; its id is ignored."""
    fields = {
        "name": wanted.name or wanted.slug,
        "accelerator_key": wanted.accelerator_key,
        "accelerator_count": wanted.accelerator_count,
        "precision": wanted.precision,
        "start": wanted.start,
        "end": wanted.end,
        "parameters_active": wanted.parameters_active,
        "flop_per_token": wanted.flop_per_token,
        "tokens_planned": wanted.tokens_planned,
        "tokens_per_step": wanted.tokens_per_step,
        "plan_line_key": wanted.plan_line_key,
        "git_commit": wanted.git_commit,
        "external_url": wanted.external_url,
    }
    old = Run.objects.filter(project_id=wanted.project_id, slug=wanted.slug).first()
    before = {name: getattr(old, name) for name in fields} if old else None
    run, _created = Run.objects.update_or_create(
        project_id=wanted.project_id,
        slug=wanted.slug,
        defaults=fields,
        create_defaults={**fields, "organisation_id": actor.organisation_id},
    )
    if before != fields:
        _note(actor, "run.changed" if old else "run.created", "run", str(run.pk), before, fields)
    return replace(wanted, run_id=run.pk, name=run.name)


@transaction.atomic
def assign_devices(
    actor: Actor,
    *,
    device_ids: Iterable[int],
    project_id: UUID,
    start: datetime,
    end: datetime | None,
    run_id: UUID | None = None,
) -> int:
    """Assign devices to a project for [start, end); says how many assignments are new.

    What stands already is left alone; an overlap with another one is refused, nothing stored.

    Raises:
        RunsError: a device works for somebody at that time.
    """
    wanted = sorted(set(device_ids))
    list(Device.objects.select_for_update().filter(pk__in=wanted).order_by("pk"))
    same = Assignment.objects.filter(device_id__in=wanted, project_id=project_id, start=start)
    same = same.filter(end=end) if end else same.filter(end__isnull=True)
    same = same.filter(run_id=run_id) if run_id else same.filter(run_id__isnull=True)
    there = set(same.values_list("device_id", flat=True))
    new = [device_id for device_id in wanted if device_id not in there]
    _refuse_overlap(new, start=start, end=end)
    Assignment.objects.bulk_create(
        Assignment(
            organisation_id=actor.organisation_id,
            device_id=device_id,
            project_id=project_id,
            run_id=run_id,
            start=start,
            end=end,
        )
        for device_id in new
    )
    if new:
        after = {"device_ids": new, "start": start, "end": end, "run_id": run_id}
        _note(actor, "devices.assigned", "project", str(project_id), None, after)
    return len(new)


def _refuse_overlap(device_ids: list[int], *, start: datetime, end: datetime | None) -> None:
    """Name the first device that is taken in [start, end)."""
    if end is not None and end <= start:
        raise RunsError(_("An assignment ends after its start; change its end."))
    taken = Assignment.objects.filter(device_id__in=device_ids).exclude(end__lte=start)
    if end is not None:
        taken = taken.filter(start__lt=end)
    clash = taken.select_related("device", "project").first()
    if clash is not None:
        raise RunsError(
            _(
                "Device %(device)s works for project %(project)s from %(start)s to %(end)s: "
                "end that assignment first, or choose another time."
            )
            % {
                "device": clash.device.uuid,
                "project": clash.project.slug,
                "start": clash.start.isoformat(),
                "end": clash.end.isoformat() if clash.end else _("open end"),
            }
        )


@transaction.atomic
def end_assignments(actor: Actor, *, device_ids: Iterable[int], at: datetime) -> int:
    """End the assignments of these devices that run at `at`; says how many ended."""
    running = Assignment.objects.filter(device_id__in=list(device_ids), start__lt=at).exclude(
        end__lte=at
    )
    ended = sorted(running.values_list("device_id", flat=True))
    running.update(end=at)
    if ended:
        _note(
            actor,
            "devices.released",
            "site",
            str(actor.organisation_id),
            None,
            {"device_ids": ended, "end": at},
        )
    return len(ended)
