"""Tokens: list, make (shown once), revoke."""

from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from projects import selectors, services
from projects.access import actor_of, projects_for
from projects.forms import TokenForm
from projects.records import Actor, NewToken, Scope


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def tokens(request: HttpRequest) -> HttpResponse:
    """List the tokens that the person may see; POST makes one and shows its secret once."""
    actor = actor_of(request)
    choices = [(project.slug, project.name) for project in projects_for(actor)]
    form = TokenForm(request.POST or None, project_choices=choices)
    new_token = None
    if request.method == "POST" and form.is_valid():
        new_token = _create(actor, form)
        if new_token is not None:
            form = TokenForm(project_choices=choices)
    context = {
        "tokens": selectors.tokens(actor),
        "form": form,
        "new_token": new_token,
        "now": timezone.now(),
        "submit": _("Create token"),
    }
    return render(request, "projects/tokens.html", context)


def _create(actor: Actor, form: TokenForm) -> NewToken | None:
    try:
        return services.create_token(
            actor,
            name=form.cleaned_data["name"],
            scopes=[Scope(scope) for scope in form.cleaned_data["scopes"]],
            days=form.cleaned_data["days"],
            reach=form.reach(),
        )
    except ValidationError as error:
        form.add_error(None, error)
    except PermissionDenied as error:
        form.add_error(None, str(error))
    except Http404:
        form.add_error("project", _("There is no such project."))
    return None


@require_POST
def token_revoke(request: HttpRequest, token_id: UUID) -> HttpResponse:
    """End a token now."""
    services.revoke_token(actor_of(request), token_id)
    messages.success(request, _("The token is revoked: programs that use it are refused now."))
    return redirect("tokens")
