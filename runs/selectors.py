"""Reads of what ran where: catalogue, sites, devices, assignments, runs; no writes."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet

from runs.catalogue import (
    accelerator_from_document,
    accelerator_from_text,
    instance_type_from_document,
    shipped_accelerators,
    shipped_instance_types,
    with_own_rows,
    with_own_types,
)
from runs.models import Assignment, CatalogueEntry, Device, InstanceTypeEntry, Run, Site
from runs.naming import named_accelerator
from runs.records import (
    AcceleratorSpec,
    AssignmentRecord,
    DeviceRecord,
    InstanceTypeSpec,
    NamedAccelerator,
    RunRecord,
    SiteRecord,
)

__all__ = ["accelerator_from_text"]


def own_accelerators(organisation_id: UUID) -> tuple[AcceleratorSpec, ...]:
    """The organisation's own rows by key."""
    entries = CatalogueEntry.objects.filter(organisation_id=organisation_id)
    return tuple(accelerator_from_document(entry.document) for entry in entries)


def own_instance_types(organisation_id: UUID) -> dict[UUID, InstanceTypeSpec]:
    """The organisation's own instance types by id."""
    entries = InstanceTypeEntry.objects.filter(organisation_id=organisation_id)
    return {entry.pk: instance_type_from_document(entry.document) for entry in entries}


def _catalogue(organisation_id: UUID | None) -> dict[str, AcceleratorSpec]:
    if organisation_id is None:
        return dict(shipped_accelerators())
    return with_own_rows(own_accelerators(organisation_id))


def _types(organisation_id: UUID | None) -> Mapping[tuple[str, str], InstanceTypeSpec]:
    if organisation_id is None:
        return shipped_instance_types()
    return with_own_types(own_instance_types(organisation_id).values())


def accelerator(key: str, organisation_id: UUID | None = None) -> AcceleratorSpec:
    """The accelerator with this key; an organisation's own row wins.

    Raises:
        LookupError: neither the shipped catalogue nor the organisation's own rows know the key.
    """
    try:
        return _catalogue(organisation_id)[key]
    except KeyError:
        raise LookupError(
            f"No accelerator {key!r} in the catalogue; see runs/data/accelerators.csv, "
            "or add your own under 'accelerators' in the configuration"
        ) from None


def accelerators(organisation_id: UUID | None = None) -> tuple[AcceleratorSpec, ...]:
    """All accelerators, shipped and own."""
    return tuple(_catalogue(organisation_id).values())


def accelerator_named(text: str, organisation_id: UUID | None = None) -> NamedAccelerator:
    """The accelerator that people call `text`, and what was assumed where the name is short.

    Takes catalogue keys, names in any case and spacing, short names such as A100 or TPU v4, and
    instance types such as p5.48xlarge. An organisation's own rows win.

    Raises:
        LookupError: nothing is called so; the message names near matches and how to add a row.
    """
    own = () if organisation_id is None else own_accelerators(organisation_id)
    return named_accelerator(
        text, specs=with_own_rows(own), own=own, types=tuple(_types(organisation_id).values())
    )


def instance_type(
    provider: str, name: str, organisation_id: UUID | None = None
) -> InstanceTypeSpec | None:
    """The machine type `name` of a provider; None when the catalogue lacks it."""
    types = _types(organisation_id)
    wanted = name.lower()
    found = types.get((provider, wanted))
    if found is None and provider == "azure":
        found = types.get((provider, f"standard_{wanted.replace(' ', '_')}"))
    return found


def instance_types(organisation_id: UUID | None = None) -> tuple[InstanceTypeSpec, ...]:
    """All machine types, own ones first."""
    return tuple(_types(organisation_id).values())


def _site_record(site: Site) -> SiteRecord:
    return SiteRecord(
        site_id=site.pk,
        organisation_id=site.organisation_id,
        slug=site.slug,
        name=site.name,
        provider=site.provider,
        region=site.region,
        country=site.country,
        state=site.state,
        time_zone=site.time_zone,
    )


def sites(organisation_id: UUID) -> list[SiteRecord]:
    """The organisation's sites by name."""
    return [_site_record(site) for site in Site.objects.filter(organisation_id=organisation_id)]


def site_by_slug(organisation_id: UUID, slug: str) -> SiteRecord | None:
    """The site with this slug; None when there is none."""
    site = Site.objects.filter(organisation_id=organisation_id, slug=slug).first()
    return _site_record(site) if site else None


def site_by_id(organisation_id: UUID, site_id: UUID) -> SiteRecord | None:
    """The site with this id; None when there is none in the organisation."""
    site = Site.objects.filter(organisation_id=organisation_id, pk=site_id).first()
    return _site_record(site) if site else None


def devices_of(site_id: UUID) -> list[DeviceRecord]:
    """The devices of a site by UUID."""
    devices = Device.objects.filter(site_id=site_id).select_related("node")
    return _device_records(devices)


def accelerator_keys(organisation_id: UUID, device_ids: Iterable[int]) -> dict[int, str]:
    """The catalogue keys of these devices; "" where a device's is not known."""
    found = Device.objects.filter(organisation_id=organisation_id, pk__in=list(device_ids))
    return dict(found.values_list("pk", "accelerator_key"))


def device_by_id(organisation_id: UUID, device_id: int) -> DeviceRecord | None:
    """The device with this id; None when there is none in the organisation."""
    found = Device.objects.filter(organisation_id=organisation_id, pk=device_id)
    return next(iter(_device_records(found.select_related("node"))), None)


def devices_by_uuid(organisation_id: UUID, uuids: Iterable[str]) -> dict[str, DeviceRecord]:
    """The known ones among these device UUIDs, wherever in the organisation they stand."""
    specs: Mapping[str, AcceleratorSpec] | None = None
    found: dict[str, DeviceRecord] = {}
    # Plain rows and one array: a site's worth of instances, or of parameters, takes seconds.
    rows = Device.objects.filter(organisation_id=organisation_id).extra(
        where=["runs_device.uuid = ANY(%s)"], params=[list(uuids)]
    )
    for pk, uuid, site_id, node, model, accelerator_key, limit_w in rows.values_list(
        "pk", "uuid", "site_id", "node__name", "model", "accelerator_key", "max_power_w"
    ):
        if specs is None:
            specs = _catalogue(organisation_id)
        spec = specs.get(accelerator_key)
        found[uuid] = DeviceRecord(
            device_id=pk,
            device_uuid=uuid,
            site_id=site_id,
            node=node or "",
            model=model,
            accelerator_key=accelerator_key,
            power_limit_w=limit_w or (spec.max_power_w if spec else None),
        )
    return found


def _device_records(devices: Iterable[Device]) -> list[DeviceRecord]:
    found = list(devices)
    specs = _catalogue(found[0].organisation_id) if found else {}
    return [_device_record(device, specs.get(device.accelerator_key)) for device in found]


def _device_record(device: Device, spec: AcceleratorSpec | None) -> DeviceRecord:
    return DeviceRecord(
        device_id=device.pk,
        device_uuid=device.uuid,
        site_id=device.site_id,
        node=device.node.name if device.node else "",
        model=device.model,
        accelerator_key=device.accelerator_key,
        power_limit_w=device.max_power_w or (spec.max_power_w if spec else None),
    )


def assignments_between(
    organisation_id: UUID,
    start: datetime,
    end: datetime,
    site_id: UUID | None = None,
    *,
    project_id: UUID | None = None,
) -> list[AssignmentRecord]:
    """The assignments that overlap [start, end), of all sites and projects or of one."""
    found = Assignment.objects.filter(organisation_id=organisation_id, start__lt=end).filter(
        Q(end__isnull=True) | Q(end__gt=start)
    )
    if site_id is not None:
        found = found.filter(device__site_id=site_id)
    if project_id is not None:
        found = found.filter(project_id=project_id)
    return _assignment_records(found)


def has_devices_at_work(project_id: UUID) -> bool:
    """Whether any device ever worked for the project."""
    return Assignment.objects.filter(project_id=project_id).exists()


def assignments_of_site(site_id: UUID) -> list[AssignmentRecord]:
    """All assignments of a site's devices."""
    return _assignment_records(Assignment.objects.filter(device__site_id=site_id))


def _assignment_records(found: QuerySet[Assignment]) -> list[AssignmentRecord]:
    rows = found.select_related("device")
    return [
        AssignmentRecord(
            device_id=row.device_id,
            device_uuid=row.device.uuid,
            site_id=row.device.site_id,
            project_id=row.project_id,
            run_id=row.run_id,
            start=row.start,
            end=row.end,
        )
        for row in rows
    ]


def assignments_of_devices(device_ids: Iterable[int]) -> list[AssignmentRecord]:
    """All assignments of these devices."""
    return _assignment_records(Assignment.objects.filter(device_id__in=list(device_ids)))


def devices_of_run(run_id: UUID, device_ids: Iterable[int]) -> set[int]:
    """Those of the devices that were ever assigned to the run."""
    found = Assignment.objects.filter(run_id=run_id, device_id__in=list(device_ids))
    return set(found.values_list("device_id", flat=True))


def runs_of(project_id: UUID, organisation_id: UUID | None = None) -> list[RunRecord]:
    """The project's runs by start."""
    found = Run.objects.filter(project_id=project_id)
    if organisation_id is not None:
        found = found.filter(organisation_id=organisation_id)
    return [_run_record(run) for run in found]


def runs_named(organisation_id: UUID, names: Iterable[str]) -> dict[str, RunRecord]:
    """The organisation's runs that are called PROJECT/RUN by their slugs; unknown ones left out."""
    wanted = {tuple(name.split("/", 1)): name for name in names if name.count("/") == 1}
    found = Run.objects.filter(
        organisation_id=organisation_id,
        project__organisation_id=organisation_id,
        slug__in={run for _project, run in wanted},
    ).select_related("project")
    return {
        wanted[run.project.slug, run.slug]: _run_record(run)
        for run in found
        if (run.project.slug, run.slug) in wanted
    }


def run_by_slug(project_id: UUID, slug: str) -> RunRecord | None:
    """The run with this slug; None when the project has none."""
    run = Run.objects.filter(project_id=project_id, slug=slug).first()
    return _run_record(run) if run else None


def run_by_id(run_id: UUID) -> RunRecord | None:
    """The run with this id; None when there is none."""
    run = Run.objects.filter(pk=run_id).first()
    return _run_record(run) if run else None


def _run_record(run: Run) -> RunRecord:
    return RunRecord(
        run_id=run.pk,
        project_id=run.project_id,
        slug=run.slug,
        name=run.name,
        accelerator_key=run.accelerator_key,
        accelerator_count=run.accelerator_count,
        precision=run.precision,
        start=run.start,
        end=run.end,
        parameters_active=run.parameters_active,
        flop_per_token=run.flop_per_token,
        tokens_planned=run.tokens_planned,
        tokens_per_step=run.tokens_per_step,
        plan_line_key=run.plan_line_key,
        git_commit=run.git_commit,
        external_url=run.external_url,
    )
