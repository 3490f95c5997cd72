"""The demo's accounts: made through the same services as real ones, with a published password."""

from django.db import transaction

from costwatch.demo.story import DEMO_PASSWORD, DEMO_USERS, DemoUser
from projects.models import Organisation, User
from projects.records import Actor, OrganisationRole
from projects.services import create_admin, invite


def ensure_people(actor: Actor, organisation: Organisation) -> None:
    """Make the accounts that are not there; one that is keeps its password and role."""
    for person in DEMO_USERS:
        if not User.objects.filter(username=person.username).exists():
            _make(actor, organisation, person)


@transaction.atomic
def _make(actor: Actor, organisation: Organisation, person: DemoUser) -> None:
    """One account: the administrator at once, others by an invitation that is taken up here."""
    email = f"{person.username}@example.invalid"
    if person.organisation_role == OrganisationRole.ADMIN:
        user = create_admin(
            actor,
            organisation=organisation,
            username=person.username,
            email=email,
            password=DEMO_PASSWORD,
        )
    else:
        invitation = invite(
            actor,
            username=person.username,
            email=email,
            organisation_role=OrganisationRole(person.organisation_role),
        )
        user = User.objects.get(pk=invitation.user_id)
        user.set_password(DEMO_PASSWORD)
    user.first_name = person.name
    user.save()
