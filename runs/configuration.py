"""What people set about sites, devices, runs and the catalogue, as one document; no factors."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from django.db import transaction
from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from projects.access import projects_for
from projects.models import Project
from projects.records import Actor
from runs import own_catalogue, services
from runs.catalogue_rows import RowError
from runs.models import Assignment, CatalogueEntry, Device, InstanceTypeEntry, Run, Site
from runs.records import RunRecord, SiteRecord
from runs.selectors import devices_by_uuid, devices_of, run_by_slug, site_by_slug

KEYS = ("accelerators", "instance_types", "sites", "devices", "runs", "assignments")
PROGRESS_FIELDS = (
    "parameters_active",
    "flop_per_token",
    "tokens_planned",
    "tokens_per_step",
    "plan_line_key",
    "git_commit",
    "external_url",
)


def _midnight(value: object) -> object:
    """A bare day is its UTC midnight."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    return value


Instant = Annotated[AwareDatetime, BeforeValidator(_midnight)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Site(BaseModel):
    # `factors` is read by the room of energy and carbon.
    model_config = ConfigDict(extra="ignore")

    slug: str = Field(pattern=r"^[-a-zA-Z0-9_]+$", max_length=80)
    name: str = ""
    provider: str = ""
    region: str = ""
    country: str = Field(default="", pattern=r"^([A-Za-z]{3})?$")
    state: str = Field(default="", pattern=r"^(US-[A-Za-z]{2})?$")
    time_zone: str = "UTC"


class _Device(_Strict):
    uuid: str
    site: str
    node: str = ""
    model: str = ""
    accelerator: str = ""
    max_power_w: float | None = Field(default=None, gt=0)


class _Run(_Strict):
    project: str
    slug: str = Field(pattern=r"^[-a-zA-Z0-9_]+$")
    name: str = ""
    accelerator: str = ""
    accelerator_count: int = Field(default=0, ge=0)
    precision: str = ""
    start: Instant | None = None
    end: Instant | None = None
    parameters_active: float | None = Field(default=None, gt=0)
    flop_per_token: float | None = Field(default=None, gt=0)
    tokens_planned: int | None = Field(default=None, gt=0, lt=2**63)
    tokens_per_step: int | None = Field(default=None, gt=0, lt=2**63)
    plan_line_key: str = Field(default="", max_length=80)
    git_commit: str = Field(default="", max_length=64)
    external_url: str = Field(default="", pattern=r"^(https?://[^\s]+)?$", max_length=500)


class _Assignment(_Strict):
    project: str
    site: str
    run: str = ""
    devices: list[str] | Literal["all"] = "all"
    start: Instant
    end: Instant | None = None


class _Document(BaseModel):
    model_config = ConfigDict(extra="ignore")

    accelerators: list[dict[str, Any]] = []
    instance_types: list[dict[str, Any]] = []
    sites: list[_Site] = []
    devices: list[_Device] = []
    runs: list[_Run] = []
    assignments: list[_Assignment] = []


def _instant_text(value: datetime | None) -> str | None:
    return value.isoformat().replace("+00:00", "Z") if value else None


def dump(organisation_id: UUID) -> dict[str, Any]:
    """The organisation's own catalogue rows, sites, devices, runs and assignments."""
    return {
        "accelerators": [
            entry.document for entry in CatalogueEntry.objects.filter(organisation=organisation_id)
        ],
        "instance_types": [
            entry.document
            for entry in InstanceTypeEntry.objects.filter(organisation=organisation_id)
        ],
        "sites": [_dumped_site(site) for site in Site.objects.filter(organisation=organisation_id)],
        "devices": [
            _dumped_device(device)
            for device in Device.objects.filter(organisation=organisation_id)
            .select_related("site", "node")
            .order_by("site__slug", "uuid")
        ],
        "runs": [
            _dumped_run(run)
            for run in Run.objects.filter(organisation=organisation_id).select_related("project")
        ],
        "assignments": _dumped_assignments(organisation_id),
    }


def _dumped_site(site: Site) -> dict[str, Any]:
    return {
        "slug": site.slug,
        "name": site.name,
        "provider": site.provider,
        "region": site.region,
        "country": site.country,
        "state": site.state,
        "time_zone": site.time_zone,
    }


def _dumped_device(device: Device) -> dict[str, Any]:
    return {
        "uuid": device.uuid,
        "site": device.site.slug,
        "node": device.node.name if device.node else "",
        "model": device.model,
        "accelerator": device.accelerator_key,
        "max_power_w": device.max_power_w,
    }


def _dumped_run(run: Run) -> dict[str, Any]:
    return {
        "project": run.project.slug,
        "slug": run.slug,
        "name": run.name,
        "accelerator": run.accelerator_key,
        "accelerator_count": run.accelerator_count,
        "precision": run.precision,
        "start": _instant_text(run.start),
        "end": _instant_text(run.end),
        **{name: getattr(run, name) for name in PROGRESS_FIELDS},
    }


def _dumped_assignments(organisation_id: UUID) -> list[dict[str, Any]]:
    """Assignments with everything alike but the device as one entry."""
    grouped: dict[tuple[Any, ...], list[str]] = {}
    found = Assignment.objects.filter(organisation=organisation_id).select_related(
        "device__site", "project", "run"
    )
    for row in found.order_by("start", "project__slug", "device__uuid"):
        run = row.run.slug if row.run else ""
        key = (row.project.slug, row.device.site.slug, run, row.start, row.end)
        grouped.setdefault(key, []).append(row.device.uuid)
    return [
        {
            "project": project,
            "site": site,
            "run": run,
            "start": _instant_text(start),
            "end": _instant_text(end),
            "devices": uuids,
        }
        for (project, site, run, start, end), uuids in grouped.items()
    ]


@transaction.atomic
def apply(actor: Actor, document: Mapping[str, Any]) -> None:
    """Bring what the document names to what it says; what it does not name stays.

    Raises:
        RunsError: an entry is malformed or names a site, project, device or run that is not there.
    """
    try:
        wanted = _Document.model_validate(
            {key: document[key] for key in KEYS if document.get(key) is not None}
        )
    except ValidationError as error:
        raise services.RunsError(_first_problem(error)) from error
    _apply_catalogue(actor, wanted)
    for site in wanted.sites:
        _apply_site(actor, site)
    _apply_devices(actor, wanted.devices)
    for run in wanted.runs:
        _apply_run(actor, run)
    for assignment in wanted.assignments:
        _apply_assignment(actor, assignment)


def _apply_catalogue(actor: Actor, wanted: _Document) -> None:
    for row in wanted.accelerators:
        with _named("accelerators", row.get("key")):
            own_catalogue.save_accelerator(actor, row)
    for row in wanted.instance_types:
        with _named("instance_types", row.get("name")):
            own_catalogue.save_instance_type(actor, row)


@contextmanager
def _named(section: str, entry: object) -> Iterator[None]:
    """Say which entry of a section was refused."""
    try:
        yield
    except RowError as error:
        raise services.RunsError(f"{section}[{entry}].{error}") from error


def _first_problem(error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(str(step) for step in first["loc"])
    return f"{where}: {first['msg']} (given: {first.get('input')!r})"


def _apply_site(actor: Actor, site: _Site) -> None:
    services.save_site(
        actor,
        SiteRecord(
            site_id=UUID(int=0),
            organisation_id=actor.organisation_id,
            **{**site.model_dump(), "name": site.name or site.slug},
        ),
    )


def _site(actor: Actor, slug: str) -> SiteRecord:
    site = site_by_slug(actor.organisation_id, slug)
    if site is None:
        raise services.RunsError(f"No site {slug!r}: add it under 'sites' first")
    return site


def _project(actor: Actor, slug: str) -> Project:
    project = projects_for(actor).filter(slug=slug).first()
    if project is None:
        raise services.RunsError(f"No project {slug!r}: add it under 'projects' first")
    return project


def _apply_devices(actor: Actor, devices: Sequence[_Device]) -> None:
    by_site: dict[str, list[_Device]] = {}
    for device in devices:
        by_site.setdefault(device.site, []).append(device)
    for slug, group in by_site.items():
        site = _site(actor, slug)
        services.ensure_devices(site, ((each.uuid, each.node, each.model) for each in group))
        known = devices_by_uuid(actor.organisation_id, (each.uuid for each in group))
        for each in group:
            if known[each.uuid].site_id != site.site_id:
                raise services.RunsError(f"Device {each.uuid} stands at another site than {slug}")
            services.change_device(
                actor,
                each.uuid,
                model=each.model,
                accelerator_key=each.accelerator or known[each.uuid].accelerator_key,
                max_power_w=each.max_power_w,
            )


def _apply_run(actor: Actor, run: _Run) -> None:
    """Set what the entry says; what it does not say of a run's progress stays."""
    project_id = _project(actor, run.project).pk
    old = run_by_slug(project_id, run.slug)
    kept = {name: getattr(old, name) for name in PROGRESS_FIELDS} if old else {}
    said = {name: getattr(run, name) for name in PROGRESS_FIELDS if name in run.model_fields_set}
    services.save_run(
        actor,
        RunRecord(
            run_id=UUID(int=0),
            project_id=project_id,
            slug=run.slug,
            name=run.name or run.slug,
            accelerator_key=run.accelerator,
            accelerator_count=run.accelerator_count,
            precision=run.precision,
            start=run.start,
            end=run.end,
            **{**kept, **said},
        ),
    )


def _apply_assignment(actor: Actor, wanted: _Assignment) -> None:
    site, project = _site(actor, wanted.site), _project(actor, wanted.project)
    ids = {record.device_uuid: record.device_id for record in devices_of(site.site_id)}
    uuids = list(ids) if wanted.devices == "all" else wanted.devices
    strangers = [uuid for uuid in uuids if uuid not in ids]
    if strangers:
        raise services.RunsError(f"Site {site.slug} has no device {strangers[0]!r}")
    run = Run.objects.filter(project=project, slug=wanted.run).first() if wanted.run else None
    if wanted.run and run is None:
        raise services.RunsError(f"Project {project.slug} has no run {wanted.run!r}")
    services.assign_devices(
        actor,
        device_ids=[ids[uuid] for uuid in uuids],
        project_id=project.pk,
        run_id=run.pk if run else None,
        start=wanted.start,
        end=wanted.end,
    )
