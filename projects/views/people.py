"""People of the organisation and members of projects."""

from collections.abc import Callable

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from projects import selectors, services
from projects.access import actor_of, require_organisation_role
from projects.forms import InvitationForm, MembershipForm, OrganisationRoleForm
from projects.records import Actor, OrganisationRole, Role


def _may(actor: Actor, *, write: bool) -> bool:
    try:
        require_organisation_role(actor, write=write)
    except PermissionDenied:
        return False
    return True


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def people(request: HttpRequest) -> HttpResponse:
    """List who is here; POST invites somebody and shows the link that sets the password."""
    actor = actor_of(request)
    form = InvitationForm(request.POST or None)
    context: dict[str, object] = {}
    if request.method == "POST":
        require_organisation_role(actor, write=True)
        if form.is_valid() and (link := _invite(request, actor, form)):
            context["invitation_link"] = link
            form = InvitationForm()
    context |= {
        "people": selectors.people(actor) if _may(actor, write=False) else None,
        "teams": selectors.teams(actor),
        "owned_ids": set(selectors.owned_projects(actor).values_list("pk", flat=True)),
        "may_invite": _may(actor, write=True),
        "sees_trail": _may(actor, write=False),
        "form": form,
        "membership_form": MembershipForm(auto_id=False),
        "organisation_roles": OrganisationRoleForm.base_fields["organisation_role"],
        "submit": _("Invite"),
    }
    return render(request, "projects/people.html", context)


def _invite(request: HttpRequest, actor: Actor, form: InvitationForm) -> str | None:
    try:
        invitation = services.invite(
            actor,
            username=form.cleaned_data["username"],
            email=form.cleaned_data["email"],
            organisation_role=OrganisationRole(form.cleaned_data["organisation_role"]),
        )
    except ValidationError as error:
        form.add_error(None, error)
        return None
    path = reverse("password_reset_confirm", args=[invitation.uid, invitation.key])
    return request.build_absolute_uri(path)


def _try(
    request: HttpRequest, form: forms.Form, change: Callable[[], object], done: str
) -> HttpResponse:
    """Make one change and go back to the list; what is wrong is said there."""
    if not form.is_valid():
        messages.error(request, " ".join(str(error) for error in form.errors.values()))
        return redirect("people")
    try:
        change()
    except ValidationError as error:
        messages.error(request, " ".join(error.messages))
    else:
        messages.success(request, done)
    return redirect("people")


@require_POST
def person_role(request: HttpRequest, user_id: int) -> HttpResponse:
    """Change what a person may do over all projects."""
    actor = actor_of(request)
    require_organisation_role(actor, write=True)
    selectors.person_for(actor, user_id)
    form = OrganisationRoleForm(request.POST)

    def change() -> None:
        role = OrganisationRole(form.cleaned_data["organisation_role"])
        services.set_organisation_role(actor, user_id=user_id, role=role)

    return _try(request, form, change, _("The role is changed."))


@require_POST
def person_active(request: HttpRequest, user_id: int) -> HttpResponse:
    """Close a person's account, or open it again."""
    actor = actor_of(request)
    active = request.POST.get("active") == "1"
    done = _("The account is open again.") if active else _("The account is closed.")
    return _try(
        request,
        forms.Form(request.POST),
        lambda: services.set_active(actor, user_id=user_id, active=active),
        done,
    )


@require_POST
def member_set(request: HttpRequest, slug: str) -> HttpResponse:
    """Give a person a role in a project."""
    actor = actor_of(request)
    selectors.owned_project(actor, slug)
    form = MembershipForm(request.POST)

    def change() -> None:
        user = selectors.person_named(actor, form.cleaned_data["username"])
        if user is None:
            raise ValidationError(_("Nobody here has this user name."))
        role = Role(form.cleaned_data["role"])
        services.set_membership(actor, slug, user_id=user.pk, role=role)

    return _try(request, form, change, _("The member is set."))


@require_POST
def member_remove(request: HttpRequest, slug: str, user_id: int) -> HttpResponse:
    """Take a person out of a project."""
    services.remove_membership(actor_of(request), slug, user_id=user_id)
    messages.success(request, _("The member is removed, and the tokens made for this project end."))
    return redirect("people")
