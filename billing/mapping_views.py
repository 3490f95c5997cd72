"""Pages on which a person says how their own CSV is read: sample, mapping, dry run, save."""

from dataclasses import replace
from typing import Any, Final

from django.contrib import messages
from django.core import signing
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from billing.adapters.mapped import ColumnMapping, Mapped
from billing.doors import require_upload
from billing.mapping_forms import MappingForm, SampleForm
from billing.records import ChargesRefusedError
from billing.selectors import source_named
from billing.services.dry_run import DryRun, Sample, dry_run, head_of, keep_sample
from billing.services.mapping import save_mapping
from billing.words import CLASS_NAMES
from lake.places import LakeError
from projects.access import actor_of
from projects.records import Actor

_SALT = "billing.mapping"
_AN_HOUR_S = 3600
_HOURS: Final = ("hour", "hrs", "小时")


@require_http_methods(["GET", "HEAD", "POST"])
def mapping_new(request: HttpRequest) -> HttpResponse:
    """Hand in a sample of a CSV that is of no known format."""
    actor = actor_of(request)
    require_upload(actor)
    form = SampleForm(
        request.POST or None,
        request.FILES or None,
        initial={"source": request.GET.get("source", "")},
    )
    if request.method == "POST" and form.is_valid():
        file = form.cleaned_data["file"]
        try:
            sample = keep_sample(file.name or "", file.chunks())
            head_of(sample, rows=1)
        except ChargesRefusedError as refusal:
            form.add_error("file", refusal.sentence)
        else:
            held = {
                "sha256": sample.sha256,
                "name": sample.name,
                "source": form.cleaned_data["source"],
                "organisation": str(actor.organisation_id),
            }
            return redirect("mapping_edit", signing.dumps(held, salt=_SALT, compress=True))
    context = {"form": form, "back": reverse("import_upload")}
    return render(request, "billing/mapping_new.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def mapping_edit(request: HttpRequest, held: str) -> HttpResponse:
    """Map the sample's columns; try the mapping; keep it."""
    actor = actor_of(request)
    require_upload(actor)
    sample, source_name = _held(actor, held)
    try:
        columns, lines = head_of(sample)
    except LakeError as error:
        raise Http404("The sample is gone; hand it in again.") from error
    source = source_named(actor.organisation_id, source_name)
    form = MappingForm(
        request.POST or None, columns=columns, mapping=source.mapping if source else {}
    )
    found: dict[str, Any] = {}
    if request.method == "POST" and form.is_valid():
        try:
            mapping = form.mapping()
            tried = dry_run(sample, Mapped(mapping))
            found["tried"], found["wants_unit"] = _named(tried), _wants_unit(mapping, tried)
            if "save" in request.POST:
                save_mapping(actor, source_name, mapping)
                messages.success(request, _("Files of this source are read by this mapping now."))
                return redirect(f"{reverse('import_upload')}?source={source_name}")
        except ChargesRefusedError as refusal:
            form.add_error(None, refusal.sentence)
        except ValidationError as error:
            form.add_error(None, error.messages)
    if form.errors and not form.non_field_errors():
        missing = ", ".join(str(row["label"]) for row in form.wrong_rows())
        found["missing"] = missing
    context = {
        "form": form,
        "columns": columns,
        "lines": [[line.get(name) for name in columns] for line in lines],
        "sample": sample,
        "source_name": source_name,
        **found,
    }
    return render(request, "billing/mapping_edit.html", context)


def _named(tried: DryRun) -> DryRun:
    """The dry run with the classes' names for its first rows."""
    first = [
        {**row, "class_name": CLASS_NAMES.get(row["x_cost_class"], row["x_cost_class"])}
        for row in tried.first
    ]
    return replace(tried, first=first)


def _held(actor: Actor, held: str) -> tuple[Sample, str]:
    """The sample that a signed address names.

    Raises:
        Http404: the address is another organisation's, or older than an hour, or made up.
    """
    try:
        found = signing.loads(held, salt=_SALT, max_age=_AN_HOUR_S)
    except signing.BadSignature as error:
        raise Http404("No such sample.") from error
    if found["organisation"] != str(actor.organisation_id):
        raise Http404("No such sample.")
    return Sample(sha256=found["sha256"], name=found["name"]), found["source"]


def _wants_unit(mapping: ColumnMapping, tried: DryRun) -> bool:
    """Whether a unit would turn the quantity into accelerator-hours that are missing so far."""
    quantity = mapping.columns.get("consumed_quantity", "")
    has_unit = "consumed_unit" in mapping.columns or mapping.constants.get("consumed_unit")
    if has_unit and quantity:
        return False
    is_hours = any(word in quantity.lower() for word in _HOURS)
    return is_hours or any(
        row["x_accelerator"] and row["x_accelerator_h"] is None for row in tried.first
    )
