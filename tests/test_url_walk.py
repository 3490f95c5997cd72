"""Every address of every room, walked: strangers are sent away, outsiders find nothing."""

import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from django.apps import apps
from django.db import models
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.urls.converters import IntConverter, SlugConverter, UUIDConverter
from django.utils import timezone

from billing.services import (
    IncomingFile,
    NewDelivery,
    add_exchange_rate,
    add_price,
    receive_files,
)
from carbon.intensity_sources import SourceWish, save_source
from jobs.services import enqueue
from projects.models import ApiToken
from projects.records import OrganisationRole, Role, Scope
from runs.services import ensure_site
from tests import builders
from tests.billing import builders as bills
from tests.billing import price_builders as prices
from tests.planning import builders as plans

pytestmark = pytest.mark.django_db

# The only names that answer without credentials. A new one needs a reason here.
OPEN_TO_ALL = {
    "healthz",  # load balancers
    "readyz",
    "robots",  # crawlers
    "login",
    "password_reset",
    "password_reset_done",
    "password_reset_confirm",
    "password_reset_complete",
    "set_language",  # a cookie of the sign-in page
    "set_theme",
}
ROOMS = {"projects", "jobs", "audit", "runs", "billing", "carbon", "planning", "reports"}
# Parameters that name a place in the caller's own list, not a thing that somebody owns.
PLACES = {"position"}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """One route: its name, its text with %(name)s for parameters, its converters."""

    name: str
    text: str
    converters: dict

    def filled(self, values: dict) -> str:
        return "/" + self.text % values


def addresses() -> list[Address]:
    """All routes, in the order of the resolver."""
    return list(_walk(get_resolver().url_patterns, "", {}))


def _walk(patterns, before: str, converters: dict) -> Iterator[Address]:
    for pattern in patterns:
        text = before + _with_placeholders(pattern)
        inner = {**converters, **pattern.pattern.converters}
        if isinstance(pattern, URLResolver):
            yield from _walk(pattern.url_patterns, text, inner)
        elif isinstance(pattern, URLPattern):
            yield Address(name=pattern.name or text, text=text, converters=inner)


def _with_placeholders(pattern) -> str:
    return re.sub(r"<(?:\w+:)?(\w+)>", r"%(\1)s", str(pattern.pattern))


def with_parameters() -> list[Address]:
    return [one for one in closed() if set(one.converters) - PLACES]


def doors_with_parameters() -> list[Address]:
    return [one for one in with_parameters() if one.text.startswith("api/")]


def meaningless(address: Address) -> dict:
    """Values that fit the converters and lead to nothing."""
    values: dict = {}
    for name, converter in address.converters.items():
        if isinstance(converter, UUIDConverter):
            values[name] = uuid.uuid4()
        elif isinstance(converter, IntConverter):
            values[name] = 987654321
        else:
            values[name] = "x"
    return values


def send(client: Client, method: str, address: str):
    return client.generic(method, address, b"{}", content_type="application/json")


def is_sent_away(response) -> bool:
    if response.status_code in {301, 302}:
        return response["Location"].startswith("/login/")
    return response.status_code in {401, 403, 404}


def closed() -> list[Address]:
    return [one for one in addresses() if one.name not in OPEN_TO_ALL]


@pytest.mark.parametrize("address", closed(), ids=lambda one: one.text or "/")
def test_a_stranger_is_sent_away_from_everything_else(address):
    for method in METHODS:
        response = send(Client(), method, address.filled(meaningless(address)))
        assert is_sent_away(response), f"{method} {address.text}: {response.status_code}"


@pytest.mark.parametrize("name", sorted(OPEN_TO_ALL))
def test_what_is_open_to_all_exists(name):
    assert name in {one.name for one in addresses()}


@pytest.fixture
def ours():
    """An organisation with one of everything that the builders know."""
    alice = builders.person("alice")
    moe = builders.project("moe", members=[(alice, Role.OWNER)])
    builders.token(Scope.READ_COSTS)
    enqueue(
        organisation_id=moe.organisation_id,
        kind=next(iter(kinds())),
        scope=f"project:{moe.pk}",
        payload={},
    )
    operator = bills.operator()
    receive_files(
        operator,
        NewDelivery(
            source_name="aws",
            files=[IncomingFile(name="bill.csv", chunks=[bills.focus_csv([bills.charge()])])],
        ),
    )
    ensure_site(operator, slug=moe.slug)
    save_source(operator, SourceWish(provider="csv", name="meter"), now=timezone.now())
    add_price(operator, prices.price_wish())
    add_exchange_rate(operator, prices.rate_wish())
    plans.make_draft(operator, moe)
    return moe, ids_of_ours()


def kinds() -> dict:
    from django.conf import settings

    return settings.JOB_KINDS


def ids_of_ours() -> list:
    """One id of each table that has opaque ids and a row: what a UUID in an address may name."""
    found = [uuid.uuid4()]
    for model in apps.get_models():
        key = model._meta.pk
        if model._meta.app_label in ROOMS and isinstance(key, models.UUIDField):
            found += list(model._default_manager.values_list("pk", flat=True)[:1])
    return found


def values_of_ours(address: Address, ours) -> Iterator[dict]:
    """Each way to fill an address with things of ours."""
    project, ids = ours
    for key in ids:
        values: dict = {}
        for name, converter in address.converters.items():
            if isinstance(converter, UUIDConverter):
                values[name] = key
            elif isinstance(converter, IntConverter):
                values[name] = project.memberships.get().user_id
            elif isinstance(converter, SlugConverter):
                values[name] = project.slug
            else:
                values[name] = "x"
        yield values
        if not any(isinstance(one, UUIDConverter) for one in address.converters.values()):
            return


@pytest.mark.parametrize("address", with_parameters(), ids=lambda one: one.text)
def test_an_administrator_of_another_organisation_finds_nothing_of_ours(address, ours):
    outsider = builders.person(
        "charlie", role=OrganisationRole.ADMIN, of=builders.organisation("other")
    )
    client = builders.signed_in(outsider)
    for values in values_of_ours(address, ours):
        for method in METHODS:
            response = send(client, method, address.filled(values))
            assert response.status_code in {404, 405}, (
                f"{method} {address.filled(values)}: {response.status_code}"
            )
    assert ApiToken.objects.filter(revoked_at__isnull=False).count() == 0


@pytest.mark.parametrize("address", doors_with_parameters(), ids=lambda one: one.text)
def test_a_token_of_another_organisation_finds_nothing_of_ours(address, ours):
    text = builders.token(*Scope, of=builders.organisation("other"))
    for values in values_of_ours(address, ours):
        for method in METHODS:
            response = send(builders.with_token(text), method, address.filled(values))
            assert response.status_code in {404, 405}, (
                f"{method} {address.filled(values)}: {response.status_code}"
            )
