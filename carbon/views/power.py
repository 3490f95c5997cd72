"""Pages of power deliveries: upload a file, watch it, see what came in."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from carbon import services
from carbon.deliveries import receive_chunks
from carbon.forms import UploadForm
from carbon.selectors import deliveries
from projects.access import actor_of, require_organisation_role
from projects.job_access import job_for
from projects.records import Actor
from runs.selectors import site_by_slug, sites


@require_http_methods(["GET", "HEAD", "POST"])
def power(request: HttpRequest) -> HttpResponse:
    """List what came in; POST uploads a file."""
    actor = actor_of(request)
    require_organisation_role(actor, write=request.method == "POST")
    choices = [(site.slug, site.name) for site in sites(actor.organisation_id)]
    initial = {"site": request.GET.get("site", "")}
    form = UploadForm(request.POST or None, request.FILES or None, sites=choices, initial=initial)
    if request.method == "POST" and form.is_valid():
        job_id = _upload(actor, form)
        if job_id is not None:
            return redirect("power_delivery", job_id=job_id)
    context = {
        "form": form,
        "has_sites": bool(choices),
        "deliveries": deliveries(actor.organisation_id),
        "may_write": actor.organisation_role == "admin",
    }
    return render(request, "carbon/power.html", context)


def _upload(actor: Actor, form: UploadForm) -> UUID | None:
    """Keep the uploaded bytes and ask a worker to store them."""
    site = site_by_slug(actor.organisation_id, form.cleaned_data["site"])
    upload = form.cleaned_data["file"]
    try:
        file = receive_chunks(upload.name, iter(upload.chunks()))
    except services.PowerFileError as error:
        form.add_error("file", str(error))
        return None
    return services.enqueue_delivery(actor, site, [file]) if site else None


@never_cache
@require_safe
def power_delivery(request: HttpRequest, job_id: UUID) -> HttpResponse:
    """Show how far an uploaded file has come."""
    progress = job_for(actor_of(request), job_id)
    context = {
        "progress": progress,
        "poll_url": reverse("job_progress", args=[job_id]),
        "report": progress.result if progress.is_over else None,
    }
    return render(request, "carbon/power_delivery.html", context)
