"""Plain builders of what many tests need: an organisation, people, projects, tokens, clients."""

from collections.abc import Iterable

from django.test import Client

from projects.access import system_actor
from projects.models import Membership, Organisation, Project, User
from projects.records import Actor, OrganisationRole, Role, Scope, TokenReach
from projects.services import create_token

PASSWORD = "a password for tests"  # long enough for the validators


def organisation(slug: str = "default") -> Organisation:
    """The organisation that set-up makes, or another one."""
    made, _created = Organisation.objects.get_or_create(slug=slug, defaults={"name": slug})
    return made


def person(
    username: str = "alice",
    *,
    role: OrganisationRole = OrganisationRole.MEMBER,
    of: Organisation | None = None,
) -> User:
    """Somebody who can sign in with PASSWORD."""
    return User.objects.create_user(
        username=username,
        email=f"{username}@example.org",
        password=PASSWORD,
        organisation=of or organisation(),
        organisation_role=role,
    )


def project(
    slug: str = "moe",
    *,
    of: Organisation | None = None,
    members: Iterable[tuple[User, Role]] = (),
    currency: str = "USD",
) -> Project:
    """A project with its members."""
    made = Project.objects.create(
        organisation=of or organisation(), slug=slug, name=slug.title(), currency=currency
    )
    for user, role in members:
        Membership.objects.create(project=made, user=user, role=role)
    return made


def actor(user: User) -> Actor:
    """What the permission door makes of a signed-in person."""
    assert user.organisation_id is not None
    return Actor(
        organisation_id=user.organisation_id,
        label=user.get_username(),
        user_id=user.pk,
        organisation_role=OrganisationRole(user.organisation_role),
    )


def signed_in(user: User) -> Client:
    """A browser of this person."""
    client = Client()
    client.force_login(user)
    return client


def token(
    *scopes: Scope, of: Organisation | None = None, reach: TokenReach | None = None, days: int = 30
) -> str:
    """The text of a live token."""
    made = create_token(
        system_actor((of or organisation()).pk, "tests"),
        name="test",
        scopes=scopes,
        days=days,
        reach=reach or TokenReach(),
    )
    return made.secret


def with_token(text: str) -> Client:
    """A program that sends this token."""
    return Client(headers={"authorization": f"Bearer {text}"})
