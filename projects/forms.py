"""What people type about projects, people and tokens, and how they sign in. No rule of who may."""

from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from projects.models import Membership, Project, User
from projects.records import Scope, TokenReach
from projects.sign_in import may_try

SCOPE_LABELS = {
    Scope.INGEST_POWER: _("Send power samples"),
    Scope.INGEST_ALERTS: _("Send alerts"),
    Scope.INGEST_RUNS: _("Send progress of training runs"),
    Scope.UPLOAD_BILLING: _("Upload bills"),
    Scope.READ_COSTS: _("Read costs, energy and emissions"),
    Scope.READ_REPORTS: _("Read reports"),
    Scope.MANAGE_PROJECT: _("Change plans and members"),
    Scope.ADMIN_ORG: _("Everything in the organisation"),
}


class SignInForm(AuthenticationForm):
    """Name and password; five tries a minute for one name from one address."""

    is_limited = False

    def clean(self) -> dict[str, Any]:
        ip = self.request.META.get("REMOTE_ADDR", "") if self.request else ""
        if not may_try(self.cleaned_data.get("username", ""), ip):
            self.is_limited = True
            raise ValidationError(_("Too many tries. Wait a minute and try again."), code="limit")
        return super().clean()


class ProjectForm(forms.ModelForm):  # type: ignore[type-arg]  # no generics when it runs
    """A new project."""

    class Meta:
        model = Project
        fields = ["name", "slug", "description", "currency", "starts_on"]
        labels = {
            "name": _("Name"),
            "slug": _("Short name in addresses"),
            "description": _("Description"),
            "currency": _("Currency of the plan"),
            "starts_on": _("First day"),
        }
        help_texts = {
            "slug": _("Lower-case letters, digits and hyphens, such as moe-10b."),
            "currency": _(
                "ISO 4217 code such as USD, EUR or CNY. It stays once plans stand in it."
            ),
            "starts_on": _("Leave it empty when you do not know yet."),
        }
        widgets = {
            "description": forms.Textarea(attrs={"rows": 3}),
            "starts_on": forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
        }


class InvitationForm(forms.Form):
    """Whom to invite, and what the person may do over all projects."""

    username = forms.CharField(label=_("User name"), max_length=150)
    email = forms.EmailField(label=_("E-mail"))
    organisation_role = forms.ChoiceField(
        label=_("Role in the organisation"), choices=User.OrganisationRole.choices
    )


class OrganisationRoleForm(forms.Form):
    """A person's role over all projects."""

    organisation_role = forms.ChoiceField(
        label=_("Role in the organisation"), choices=User.OrganisationRole.choices
    )


class MembershipForm(forms.Form):
    """Who takes part in a project, and as what. People are named, not picked from a list."""

    username = forms.CharField(label=_("User name"), max_length=150)
    role = forms.ChoiceField(label=_("Role"), choices=Membership.Role.choices)


class TokenForm(forms.Form):
    """A new token: its name, what it may do, for which project, for how long."""

    name = forms.CharField(
        label=_("Name"), max_length=120, help_text=_("Where it will be used, such as node agents.")
    )
    scopes = forms.MultipleChoiceField(
        label=_("It may"),
        choices=[(scope.value, label) for scope, label in SCOPE_LABELS.items()],
        widget=forms.CheckboxSelectMultiple,
    )
    project = forms.ChoiceField(label=_("For"), required=False)
    days = forms.IntegerField(
        label=_("Days until it expires"),
        initial=90,
        min_value=1,
        max_value=365,
        help_text=_("At most 90; 365 for a token that only sends."),
    )

    def __init__(self, *args: Any, project_choices: list[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["project"]
        if isinstance(field, forms.ChoiceField):
            field.choices = [("", _("The whole organisation")), *project_choices]

    def reach(self) -> TokenReach:
        """What the token is limited to."""
        return TokenReach(project_slug=self.cleaned_data["project"] or None)
