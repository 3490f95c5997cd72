"""The frame shows nobody a door that their role cannot open."""

import pytest

from projects.records import OrganisationRole
from tests.builders import person, project, signed_in

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("role", "shown"),
    [
        (OrganisationRole.ADMIN, {"/sites/", "/projects/new/"}),
        (OrganisationRole.AUDITOR, {"/sites/"}),
        (OrganisationRole.MEMBER, set()),
    ],
)
def test_only_doors_that_open_are_shown(role, shown):
    project("moe")
    page = signed_in(person("ada", role=role)).get("/").content.decode()

    assert {path for path in ("/sites/", "/projects/new/") if f'href="{path}"' in page} == shown
