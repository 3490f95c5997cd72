"""Pages of a project's runs: the list, a run's progress, the form of a run."""

from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from projects.access import Actor, Role, actor_of, project_for
from projects.models import Project
from runs.progress_forms import RunForm, run_initial
from runs.progress_pages import run_lines, run_page
from runs.records import RunRecord
from runs.selectors import accelerators, run_by_slug
from runs.services import save_run


def _may_change(actor: Actor, slug: str) -> bool:
    try:
        project_for(actor, slug, Role.ANALYST)
    except PermissionDenied:
        return False
    return True


def _run_of(project: Project, slug: str) -> RunRecord:
    run = run_by_slug(project.pk, slug)
    if run is None:
        raise Http404("No such run.")
    return run


@require_safe
def runs(request: HttpRequest, slug: str) -> HttpResponse:
    """List the project's runs and where each stands."""
    actor = actor_of(request)
    project = project_for(actor, slug)
    context = {
        "project": project,
        "lines": run_lines(project),
        "may_change": _may_change(actor, slug),
    }
    return render(request, "runs/runs.html", context)


@require_safe
def run_detail(request: HttpRequest, slug: str, run_slug: str) -> HttpResponse:
    """Show a run's progress, events and where its device-time went."""
    actor = actor_of(request)
    project = project_for(actor, slug)
    run = _run_of(project, run_slug)
    context = {
        "project": project,
        "run": run,
        "may_change": _may_change(actor, slug),
        **run_page(project, run),
    }
    return render(request, "runs/run.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def run_new(request: HttpRequest, slug: str) -> HttpResponse:
    """Ask for a run before it reports anything."""
    actor = actor_of(request)
    project = project_for(actor, slug, Role.ANALYST)
    form = RunForm(request.POST or None, accelerators=accelerators(actor.organisation_id))
    if request.method == "POST" and form.is_valid():
        run_slug = form.cleaned_data["slug"]
        if run_by_slug(project.pk, run_slug) is not None:
            form.add_error("slug", _("The project has a run of this name."))
        else:
            save_run(
                actor,
                RunRecord(
                    run_id=UUID(int=0), project_id=project.pk, slug=run_slug, **form.changes()
                ),
            )
            return redirect("run_detail", slug=slug, run_slug=run_slug)
    return render(request, "runs/run_form.html", {"project": project, "form": form, "run": None})


@require_http_methods(["GET", "HEAD", "POST"])
def run_edit(request: HttpRequest, slug: str, run_slug: str) -> HttpResponse:
    """Change what a run is measured against; its slug stays."""
    actor = actor_of(request)
    project = project_for(actor, slug, Role.ANALYST)
    run = _run_of(project, run_slug)
    form = RunForm(
        request.POST or None,
        accelerators=accelerators(actor.organisation_id),
        initial=run_initial(run),
    )
    form.fields["slug"].disabled = True
    if request.method == "POST" and form.is_valid():
        save_run(
            actor,
            RunRecord(
                run_id=run.run_id,
                project_id=project.pk,
                slug=run.slug,
                **form.changes(run),
            ),
        )
        messages.success(request, _("Saved."))
        return redirect("run_detail", slug=slug, run_slug=run.slug)
    return render(request, "runs/run_form.html", {"project": project, "form": form, "run": run})
