"""Pages of the hardware catalogue: accelerators, instance types, an organisation's own rows."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from projects.access import Actor, actor_of, require_organisation_role
from runs import catalogue_pages, own_catalogue
from runs.catalogue import shipped_accelerators
from runs.catalogue_rows import RowError
from runs.forms import (
    AcceleratorForm,
    InstanceTypeForm,
    accelerator_initial,
    instance_type_initial,
)
from runs.records import AcceleratorSpec, InstanceTypeSpec
from runs.selectors import accelerator as accelerator_of
from runs.selectors import accelerators, own_accelerators, own_instance_types

LONGEST_QUERY = 200


def _may_write(actor: Actor) -> bool:
    return actor.organisation_role == "admin"


def _query(request: HttpRequest, name: str) -> str:
    return request.GET.get(name, "").strip()[:LONGEST_QUERY]


@require_safe
def catalogue(request: HttpRequest) -> HttpResponse:
    """List the accelerators that a text and a vendor leave."""
    actor = actor_of(request)
    of, text, vendor = actor.organisation_id, _query(request, "q"), _query(request, "vendor")
    lines = catalogue_pages.accelerator_lines(of, text=text, vendor=vendor)
    context = {
        "lines": lines,
        "total": len(accelerators(of)),
        "meaning": catalogue_pages.meaning_of(text, of) if text else None,
        "q": text,
        "vendor": vendor,
        "vendors": catalogue_pages.vendors(of),
        "dense": [one.upper() for one in catalogue_pages.LISTED_DENSE],
        "sparse": [one.upper() for one in catalogue_pages.LISTED_SPARSE],
        "may_write": _may_write(actor),
    }
    return render(request, "runs/catalogue.html", context)


def _spec_for(actor: Actor, key: str) -> AcceleratorSpec:
    try:
        return accelerator_of(key, actor.organisation_id)
    except LookupError as error:
        raise Http404("No such accelerator.") from error


@require_safe
def accelerator(request: HttpRequest, key: str) -> HttpResponse:
    """Show all figures of one accelerator, and which machines hold it."""
    actor = actor_of(request)
    spec = _spec_for(actor, key)
    return render(request, "runs/accelerator.html", _page_of(actor, spec))


def _page_of(actor: Actor, spec: AcceleratorSpec) -> dict[str, Any]:
    is_own = any(one.key == spec.key for one in own_accelerators(actor.organisation_id))
    return {
        "spec": spec,
        "peaks": catalogue_pages.peak_rows(spec),
        "types": catalogue_pages.type_lines(actor.organisation_id, key=spec.key),
        "other_names": catalogue_pages.other_names(spec.key),
        "is_own": is_own,
        "shipped": shipped_accelerators().get(spec.key) if is_own else None,
        "differences": catalogue_pages.differences(spec) if is_own else [],
        "may_write": _may_write(actor),
    }


@require_http_methods(["GET", "HEAD", "POST"])
def accelerator_new(request: HttpRequest) -> HttpResponse:
    """Ask for an own accelerator."""
    actor = actor_of(request)
    require_organisation_role(actor, write=True)
    return _accelerator_form(request, actor, AcceleratorForm(request.POST or None), None)


@require_http_methods(["GET", "HEAD", "POST"])
def accelerator_edit(request: HttpRequest, key: str) -> HttpResponse:
    """Change an own accelerator, or override a shipped one."""
    actor = actor_of(request)
    spec = _spec_for(actor, key)
    require_organisation_role(actor, write=True)
    is_own = any(one.key == key for one in own_accelerators(actor.organisation_id))
    initial = accelerator_initial(spec)
    if not is_own:  # the source of the shipped figures is not the source of other ones
        initial |= {"source": "", "source_date": ""}
    data = {**request.POST.dict(), "key": key} if request.method == "POST" else None
    form = AcceleratorForm(data, initial=initial)
    form.fields["key"].disabled = True
    return _accelerator_form(request, actor, form, spec)


def _accelerator_form(
    request: HttpRequest, actor: Actor, form: AcceleratorForm, spec: AcceleratorSpec | None
) -> HttpResponse:
    if request.method == "POST" and form.is_valid():
        try:
            own_catalogue.save_accelerator(actor, form.document())
        except RowError as error:
            form.refuse(error)
        else:
            messages.success(request, _("Saved. New estimates use this row."))
            return redirect("catalogue_accelerator", key=form.cleaned_data["key"])
    key = spec.key if spec else str(form.data.get("key", ""))
    context = {"form": form, "spec": spec, "shipped": shipped_accelerators().get(key)}
    return render(request, "runs/accelerator_form.html", context)


@require_POST
def accelerator_remove(request: HttpRequest, key: str) -> HttpResponse:
    """Remove an own accelerator."""
    actor = actor_of(request)
    spec = _spec_for(actor, key)
    require_organisation_role(actor, write=True)
    try:
        own_catalogue.remove_accelerator(actor, key)
    except LookupError as error:
        raise Http404("No such row.") from error
    except RowError as error:
        messages.error(request, error.message)
        return redirect("catalogue_accelerator", key=key)
    messages.success(request, _("%(name)s of your own is removed.") % {"name": spec.name})
    if key in shipped_accelerators():
        return redirect("catalogue_accelerator", key=key)
    return redirect("catalogue")


@require_safe
def instance_types(request: HttpRequest) -> HttpResponse:
    """List the instance types that a text and a provider leave."""
    actor = actor_of(request)
    of, text, provider = actor.organisation_id, _query(request, "q"), _query(request, "provider")
    context = {
        "lines": catalogue_pages.type_lines(of, text=text, provider=provider),
        "q": text,
        "provider": provider,
        "providers": catalogue_pages.providers(of),
        "may_write": _may_write(actor),
    }
    return render(request, "runs/instance_types.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def instance_type_new(request: HttpRequest) -> HttpResponse:
    """Ask for an own instance type."""
    actor = actor_of(request)
    require_organisation_role(actor, write=True)
    form = InstanceTypeForm(
        request.POST or None,
        accelerators=accelerators(actor.organisation_id),
        initial={"accelerator": _query(request, "accelerator")},
    )
    return _instance_type_form(request, actor, form, None)


@require_http_methods(["GET", "HEAD", "POST"])
def instance_type_edit(request: HttpRequest, entry_id: UUID) -> HttpResponse:
    """Change an own instance type; provider and name stay."""
    actor = actor_of(request)
    spec = own_instance_types(actor.organisation_id).get(entry_id)
    if spec is None:
        raise Http404("No such instance type.")
    require_organisation_role(actor, write=True)
    form = InstanceTypeForm(
        request.POST or None,
        accelerators=accelerators(actor.organisation_id),
        initial=instance_type_initial(spec),
    )
    form.fields["provider"].disabled = form.fields["name"].disabled = True
    return _instance_type_form(request, actor, form, spec)


def _instance_type_form(
    request: HttpRequest, actor: Actor, form: InstanceTypeForm, spec: InstanceTypeSpec | None
) -> HttpResponse:
    if request.method == "POST" and form.is_valid():
        try:
            own_catalogue.save_instance_type(actor, form.document())
        except RowError as error:
            form.refuse(error)
        else:
            messages.success(request, _("Saved."))
            return redirect("catalogue_instance_types")
    return render(request, "runs/instance_type_form.html", {"form": form, "spec": spec})


@require_POST
def instance_type_remove(request: HttpRequest, entry_id: UUID) -> HttpResponse:
    """Remove an own instance type."""
    actor = actor_of(request)
    if entry_id not in own_instance_types(actor.organisation_id):
        raise Http404("No such instance type.")
    require_organisation_role(actor, write=True)
    own_catalogue.remove_instance_type(actor, entry_id)
    messages.success(request, _("The instance type of your own is removed."))
    return redirect("catalogue_instance_types")
