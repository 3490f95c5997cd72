"""The organisation that a command was asked for, or a refusal in one line."""

from django.core.management.base import CommandError

from projects.models import Organisation
from projects.selectors import NoOrganisationError, organisation_by_slug, the_organisation


def chosen_organisation(slug: str | None) -> Organisation:
    """The organisation with this slug; without one, the only one.

    Raises:
        CommandError: there is none.
    """
    try:
        return organisation_by_slug(slug) if slug else the_organisation()
    except NoOrganisationError as error:
        raise CommandError(str(error)) from error
