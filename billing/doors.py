"""Who may hand bills in, see deliveries and change rules, told by the one permission door."""

from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.utils.translation import gettext as _

from billing.cost_questions import Scope as CostScope
from billing.models import Delivery, Source
from billing.selectors import delivery_by_id
from projects.access import (
    projects_for,
    require_analyst,
    require_organisation_role,
    require_scope,
    sees_unallocated,
)
from projects.records import Actor, Scope

PRICE_READERS = (Scope.READ_COSTS, Scope.READ_REPORTS, Scope.MANAGE_PROJECT, Scope.ADMIN_ORG)


def require_upload(actor: Actor, source_name: str | None = None) -> None:
    """Let through who may hand bills in: admins, analysts, tokens for uploads.

    Raises:
        PermissionDenied: a viewer, another token, or a token of another source.
    """
    if not actor.is_token:
        require_analyst(actor)
        return
    require_scope(actor, Scope.UPLOAD_BILLING, Scope.ADMIN_ORG)
    if actor.token_project_id is not None:
        raise PermissionDenied(_("A token of one project cannot upload an organisation's bills."))
    if actor.token_site_id is not None and actor.token_source_id is None:
        raise PermissionDenied(_("A token of one site cannot upload an organisation's bills."))
    if actor.token_source_id is None or source_name is None:
        return
    own = Source.objects.filter(
        organisation_id=actor.organisation_id, pk=actor.token_source_id, name=source_name
    )
    if not own.exists():
        raise PermissionDenied(_("This token uploads for another source."))


def may_upload(actor: Actor) -> bool:
    """Whether the actor may hand bills in."""
    try:
        require_upload(actor)
    except PermissionDenied:
        return False
    return True


def may_change_rules(actor: Actor) -> bool:
    """Whether the actor may say whose charges are whose."""
    try:
        require_organisation_role(actor, write=True)
    except PermissionDenied:
        return False
    return True


def sees_totals(actor: Actor, delivery: Delivery) -> bool:
    """Whether the actor may see a delivery's amounts: those of all projects are in them."""
    return sees_unallocated(actor) or delivery.received_by == actor.label


def cost_scope(actor: Actor) -> CostScope:
    """The charges that the actor may see: everything, or those of its projects."""
    if sees_unallocated(actor):
        return CostScope()
    allowed = tuple(projects_for(actor).values_list("pk", flat=True))
    return CostScope(allowed=allowed, include_unallocated=False)


def delivery_for(actor: Actor, delivery_id: UUID) -> Delivery:
    """A delivery that the actor may see.

    Raises:
        Http404: no such delivery, or one that the actor may not see (the two look alike).
    """
    delivery = delivery_by_id(actor.organisation_id, delivery_id)
    if delivery is None or not (may_upload(actor) or sees_unallocated(actor)):
        raise Http404("No such delivery.")
    if actor.token_source_id not in (None, delivery.source_id):
        raise Http404("No such delivery.")
    return delivery


def may_change_prices(actor: Actor) -> bool:
    """Whether the actor may state and withdraw prices and exchange rates."""
    return may_change_rules(actor)


def require_price_reader(actor: Actor) -> None:
    """Let everybody of the organisation read prices, and tokens that read all its costs.

    Raises:
        PermissionDenied: a token of one project, site or source, or without a scope for it.
    """
    if not actor.is_token:
        return
    require_scope(actor, *PRICE_READERS)
    if actor.token_project_id is not None or actor.is_of_one_site_or_source:
        raise PermissionDenied(_("Prices are the organisation's; this token reaches less far."))
