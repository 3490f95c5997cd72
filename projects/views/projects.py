"""The page that makes a project."""

from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from projects import services
from projects.access import actor_of, require_organisation_role
from projects.forms import ProjectForm


@require_http_methods(["GET", "HEAD", "POST"])
def project_new(request: HttpRequest) -> HttpResponse:
    """Ask for a project's name and currency, make it, go to its page."""
    actor = actor_of(request)
    require_organisation_role(actor, write=True)
    form = ProjectForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            project = services.create_project(actor, **form.cleaned_data)
        except ValidationError as error:
            form.add_error(None, error)
        else:
            return redirect("project", slug=project.slug)
    return render(
        request, "projects/project_new.html", {"form": form, "submit": _("Create project")}
    )
