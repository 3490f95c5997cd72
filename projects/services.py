"""Writes of who: projects, memberships, people. Every one leaves its line in the audit trail."""

from datetime import date

from django.contrib.auth.models import BaseUserManager
from django.contrib.auth.password_validation import validate_password
from django.contrib.auth.tokens import default_token_generator
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.http import Http404
from django.utils import timezone
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode
from django.utils.translation import gettext as _

from formulae.money import Money, MoneyError
from projects.access import project_for, require_organisation_role
from projects.models import ApiToken, Membership, Organisation, Project, User
from projects.records import Actor, Invitation, OrganisationRole, Role
from projects.token_services import (
    create_token,
    end_organisation_tokens,
    end_tokens_above,
    revoke_token,
)
from projects.trail import note

__all__ = [
    "archive_project",
    "create_admin",
    "create_project",
    "create_token",
    "invite",
    "remove_membership",
    "revoke_token",
    "set_active",
    "set_membership",
    "set_organisation_role",
    "update_project",
]

RESERVED_SLUGS = {"new"}  # projects/new/ is a page


def create_project(
    actor: Actor,
    *,
    slug: str,
    name: str,
    description: str = "",
    currency: str = "USD",
    starts_on: date | None = None,
    is_synthetic: bool = False,
) -> Project:
    """Create a project; the person who does becomes its owner.

    Raises:
        PermissionDenied: this needs an administrator.
        ValidationError: by field, what is wrong.
    """
    require_organisation_role(actor, write=True)
    project = Project(
        organisation_id=actor.organisation_id,
        slug=slug,
        name=name,
        description=description,
        currency=currency,
        starts_on=starts_on,
        is_synthetic=is_synthetic,
    )
    _check_currency(currency)
    if slug in RESERVED_SLUGS:
        raise ValidationError({"slug": _("This word is part of other addresses: choose another.")})
    project.full_clean(validate_constraints=False)  # the insert itself finds a taken slug
    try:
        with transaction.atomic():
            project.save(force_insert=True)
            if actor.user_id is not None:
                Membership.objects.create(project=project, user_id=actor.user_id, role=Role.OWNER)
            note(actor, "project.create", subject=("project", project.pk), after=_shown(project))
    except IntegrityError as error:
        raise ValidationError({"slug": _("Another project has this address.")}) from error
    return project


def _check_currency(currency: str) -> None:
    try:
        Money.of(0, currency)
    except MoneyError as error:
        raise ValidationError(
            {"currency": _("Write an ISO 4217 code such as USD, EUR or CNY.")}
        ) from error


def _shown(project: Project) -> dict[str, object]:
    names = ("slug", "name", "description", "currency", "starts_on", "is_synthetic", "archived_at")
    return {name: getattr(project, name) for name in names}


@transaction.atomic
def update_project(
    actor: Actor, slug: str, *, name: str, description: str, starts_on: date | None
) -> Project:
    """Change what a project says of itself. Its currency stays: sums stand in it."""
    project = project_for(actor, slug, Role.OWNER)
    before = _shown(project)
    project.name, project.description, project.starts_on = name, description, starts_on
    project.full_clean()
    project.save()
    if _shown(project) != before:
        subject = ("project", project.pk)
        note(actor, "project.update", subject=subject, before=before, after=_shown(project))
    return project


@transaction.atomic
def archive_project(actor: Actor, slug: str, *, reason: str) -> None:
    """Take a project off every page; nothing of it is deleted."""
    project = project_for(actor, slug, Role.OWNER)
    project.archived_at = timezone.now()
    project.save(update_fields=["archived_at"])
    note(
        actor,
        "project.archive",
        subject=("project", project.pk),
        after=_shown(project),
        reason=reason,
    )


@transaction.atomic
def set_membership(actor: Actor, slug: str, *, user_id: int, role: Role) -> Membership:
    """Give a person of the organisation a role in a project."""
    project = project_for(actor, slug, Role.OWNER)
    user = _person(actor, user_id)
    membership = Membership.objects.select_for_update().filter(project=project, user=user).first()
    before = {"user": user.get_username(), "role": membership.role} if membership else None
    membership, _created = Membership.objects.update_or_create(
        project=project, user=user, defaults={"role": role}
    )
    if user.organisation_role != OrganisationRole.ADMIN:
        end_tokens_above(user, project, role)
    note(
        actor,
        "membership.set",
        subject=("project", project.pk),
        before=before,
        after={"user": user.get_username(), "role": role},
    )
    return membership


@transaction.atomic
def remove_membership(actor: Actor, slug: str, *, user_id: int) -> None:
    """Take a person out of a project, and end the tokens for it that the person made."""
    project = project_for(actor, slug, Role.OWNER)
    user = _person(actor, user_id)
    membership = Membership.objects.select_for_update().filter(project=project, user=user).first()
    if membership is None:
        raise Http404("No such member.")
    membership.delete()
    ApiToken.objects.filter(project=project, created_by=user, revoked_at__isnull=True).update(
        revoked_at=timezone.now()
    )
    note(
        actor,
        "membership.remove",
        subject=("project", project.pk),
        before={"user": user.get_username(), "role": membership.role},
    )


def _person(actor: Actor, user_id: int) -> User:
    user = (
        User.objects.select_for_update()
        .filter(pk=user_id, organisation_id=actor.organisation_id)
        .first()
    )
    if user is None:
        raise Http404("No such person.")
    return user


def invite(
    actor: Actor, *, username: str, email: str, organisation_role: OrganisationRole
) -> Invitation:
    """Make an account without a password, and the two parts of the link that sets one.

    Raises:
        PermissionDenied: this needs an administrator.
        ValidationError: by field, what is wrong.
    """
    require_organisation_role(actor, write=True)
    user = User(
        username=username,
        email=BaseUserManager.normalize_email(email),
        organisation_id=actor.organisation_id,
        organisation_role=organisation_role,
    )
    user.set_unusable_password()
    user.full_clean()
    try:
        validate_email(email)
    except ValidationError as error:
        raise ValidationError({"email": error.messages}) from error
    try:
        with transaction.atomic():
            user.save(force_insert=True)
            after = {"username": username, "email": email, "organisation_role": organisation_role}
            note(actor, "person.invite", subject=("user", user.pk), after=after)
    except IntegrityError as error:
        raise ValidationError({"username": _("This name is taken.")}) from error
    return Invitation(
        user_id=user.pk,
        username=username,
        uid=urlsafe_base64_encode(force_bytes(user.pk)),
        key=default_token_generator.make_token(user),
    )


@transaction.atomic
def set_organisation_role(actor: Actor, *, user_id: int, role: OrganisationRole) -> None:
    """Change what a person may do over all projects; the last administrator stays one."""
    require_organisation_role(actor, write=True)
    user = _person(actor, user_id)
    before = user.organisation_role
    if before == OrganisationRole.ADMIN and role != OrganisationRole.ADMIN:
        _keep_one_admin(actor, user)
    user.organisation_role = role
    user.save(update_fields=["organisation_role"])
    if before == OrganisationRole.ADMIN and role != OrganisationRole.ADMIN:
        end_organisation_tokens(user)
    note(
        actor,
        "person.role",
        subject=("user", user.pk),
        before={"organisation_role": before},
        after={"organisation_role": role},
    )


@transaction.atomic
def set_active(actor: Actor, *, user_id: int, active: bool) -> None:
    """Let a person sign in, or no longer; what the person did stays."""
    require_organisation_role(actor, write=True)
    user = _person(actor, user_id)
    if not active and user.organisation_role == OrganisationRole.ADMIN:
        _keep_one_admin(actor, user)
    before = user.is_active
    user.is_active = active
    user.save(update_fields=["is_active"])
    note(
        actor,
        "person.active",
        subject=("user", user.pk),
        before={"is_active": before},
        after={"is_active": active},
    )


def _keep_one_admin(actor: Actor, leaving: User) -> None:
    others = (
        User.objects.select_for_update()
        .filter(
            organisation_id=actor.organisation_id,
            organisation_role=OrganisationRole.ADMIN,
            is_active=True,
        )
        .exclude(pk=leaving.pk)
    )
    if not list(others.values_list("pk", flat=True)):
        raise ValidationError(
            {"organisation_role": _("Somebody must stay administrator: name another one first.")}
        )


@transaction.atomic
def create_admin(
    actor: Actor, *, organisation: Organisation, username: str, email: str, password: str
) -> User:
    """Make an administrator with a password, for set-up and for hosts locked out.

    Raises:
        ValidationError: by field, what is wrong.
    """
    user = User(
        username=username,
        email=BaseUserManager.normalize_email(email),
        organisation=organisation,
        organisation_role=OrganisationRole.ADMIN,
    )
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise ValidationError({"password": error.messages}) from error
    user.set_password(password)
    user.full_clean()
    user.save(force_insert=True)
    note(actor, "person.create_admin", subject=("user", user.pk), after={"username": username})
    return user
