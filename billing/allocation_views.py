"""Pages of allocation: rules in force, one rule, the preview of a change, what is unallocated."""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.core import signing
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from billing.allocation_drill import (
    catches,
    last_months,
    nobodys_costs,
    nobodys_tag_keys,
)
from billing.allocation_forms import RuleForms
from billing.allocation_pages import (
    drill_links,
    idle_in_words,
    moved,
    project_names,
    rule_rows,
    started_by,
    tag_links,
)
from billing.allocation_preview import Catch, preview_rules
from billing.allocation_selectors import newest_rule_set
from billing.allocation_wishes import (
    RuleWish,
    checked,
    projects_of,
    records_of,
    wish_in,
    wishes_of,
)
from billing.cost_questions import QuestionError, read_filters, written_filters
from billing.doors import may_change_rules
from billing.models import RuleSet
from billing.services import replace_rules
from billing.services.allocation import number_of
from jobs.records import UnknownJobError
from jobs.selectors import job_progress
from projects.access import Actor, actor_of, projects_for, require_organisation_role

PREVIEW_SALT: Final = "billing.allocation.preview"
PREVIEW_LIVES_S: Final = 6 * 3600
DRILL_BY: Final = ("sub_account_id", "service_name", "x_cost_class", "region_id", "provider_name")
TAGS: Final = "tags"


@require_safe
def rules_moved(request: HttpRequest) -> HttpResponse:
    """The older address of the rules."""
    return redirect("allocation", permanent=True)


@require_safe
def allocation(request: HttpRequest) -> HttpResponse:
    """The rules in force, what each caught lately, and what is left."""
    actor = actor_of(request)
    require_organisation_role(actor, write=False)
    rule_set = newest_rule_set(actor.organisation_id)
    window = last_months(actor.organisation_id)
    caught = catches(actor.organisation_id, window) if window else {}
    wishes = wishes_of(rule_set)
    context = {
        "rules": rule_rows(wishes, caught, project_names(actor, rule_set)),
        "last": len(wishes),
        "number": number_of(rule_set),
        "unmatched": caught.get(None, Catch()),
        "window": window,
        "may_change": may_change_rules(actor),
        **_rebuild(request, actor),
    }
    return render(request, "billing/allocation.html", context)


def _rebuild(request: HttpRequest, actor: Actor) -> dict[str, Any]:
    """The progress of the job that applies a change of rules."""
    try:
        job_id = UUID(request.GET.get("job", ""))
        progress = job_progress(job_id, actor.organisation_id)
    except (ValueError, UnknownJobError):
        return {}
    return {"progress": progress, "progress_url": reverse("job_progress", args=[job_id])}


@require_http_methods(["GET", "HEAD", "POST"])
def rule_new(request: HttpRequest) -> HttpResponse:
    """Write a rule behind the others, then see what it would do."""
    return _rule_page(request, position=None)


@require_http_methods(["GET", "HEAD", "POST"])
def rule_edit(request: HttpRequest, position: int) -> HttpResponse:
    """Rewrite a rule, then see what that would do."""
    return _rule_page(request, position=position)


def _rule_page(request: HttpRequest, *, position: int | None) -> HttpResponse:
    actor = actor_of(request)
    require_organisation_role(actor, write=True)
    rule_set = newest_rule_set(actor.organisation_id)
    wishes = wishes_of(rule_set)
    if position is not None and not 0 < position <= len(wishes):
        raise Http404("No such rule.")
    known = wishes[position - 1] if position else started_by(request.GET)
    names = project_names(actor, rule_set)
    choices = [(one.slug, one.name) for one in projects_for(actor)]
    choices += [
        (one.project, names[one.project])
        for one in (known.targets if known else ())
        if one.project and one.project not in dict(choices)
    ]
    data = request.POST if request.method == "POST" else None
    forms = RuleForms(data, wish=known, project_choices=choices)
    if data is not None and "preview" in data and forms.is_valid():
        place = position or len(wishes) + 1
        changed = [*wishes[: place - 1], forms.wish(), *wishes[place:]]
        try:
            return _preview(request, actor, changed, place=place)
        except ValidationError as error:
            forms.errors = error.messages
    context = {"forms": forms, "position": position, "number": number_of(rule_set)}
    return render(request, "billing/allocation_rule.html", context)


@require_POST
def rule_change(request: HttpRequest, position: int) -> HttpResponse:
    """See what moving a rule up or down or removing it would do."""
    actor = actor_of(request)
    require_organisation_role(actor, write=True)
    wishes = wishes_of(newest_rule_set(actor.organisation_id))
    changed = moved(wishes, position, request.POST.get("action", ""))
    if changed is None:
        messages.warning(request, _("There is no such rule; it may have been removed already."))
        return redirect("allocation")
    rules, place = changed
    try:
        return _preview(request, actor, rules, place=place)
    except ValidationError as error:
        messages.warning(request, " ".join(error.messages))
        return redirect("allocation")


def _preview(
    request: HttpRequest, actor: Actor, wishes: Sequence[RuleWish], *, place: int | None
) -> HttpResponse:
    """What all rules together would do, and the way to put them in force.

    Raises:
        ValidationError: the rules cannot be, or others are in force than they were made from.
    """
    rule_set = newest_rule_set(actor.organisation_id)
    if request.POST.get("number", "") != str(number_of(rule_set)):
        raise ValidationError(
            _("Somebody changed the rules meanwhile; look at them and preview again.")
        )
    rules = checked(wishes)
    projects = projects_of(actor, rule_set, rules)
    preview = preview_rules(actor.organisation_id, records_of(rules, projects))
    names = project_names(actor, rule_set)
    context = {
        "preview": preview,
        "projects": [
            {"change": one, "name": names.get(one.project or "", one.project)}
            for one in preview.projects
        ],
        "place": place,
        "caught": preview.catches.get(place, Catch()) if place else None,
        "warnings": idle_in_words(preview.idle),
        "rules": rule_rows(rules, preview.catches, names),
        "unmatched": preview.catches.get(None, Catch()),
        "sealed": _seal(actor, rules, rule_set),
    }
    return render(request, "billing/allocation_preview.html", context)


def _seal(actor: Actor, rules: Sequence[RuleWish], rule_set: RuleSet | None) -> str:
    """The previewed rules, signed, so that what is saved is what was seen."""
    seen = {
        "organisation": str(actor.organisation_id),
        "instead_of": number_of(rule_set),
        "rules": [one.document() for one in rules],
    }
    return signing.dumps(seen, salt=PREVIEW_SALT, compress=True)


@require_POST
def rules_save(request: HttpRequest) -> HttpResponse:
    """Put the previewed rules in force, unless somebody changed them meanwhile."""
    actor = actor_of(request)
    require_organisation_role(actor, write=True)
    try:
        seen = signing.loads(
            request.POST.get("sealed", ""), salt=PREVIEW_SALT, max_age=PREVIEW_LIVES_S
        )
    except signing.BadSignature:
        messages.warning(request, _("That preview is too old; preview the change again."))
        return redirect("allocation")
    if seen["organisation"] != str(actor.organisation_id):
        raise Http404("No such preview.")
    try:
        rules = [wish_in(one) for one in seen["rules"]]
        job_id = replace_rules(actor, rules, instead_of=seen["instead_of"])
    except ValidationError as error:
        messages.warning(request, " ".join(error.messages))
        return redirect("allocation")
    if job_id is None:
        messages.info(request, _("These rules are in force already: nothing new."))
        return redirect("allocation")
    return redirect(f"{reverse('allocation')}?job={job_id}")


@require_safe
def unallocated(request: HttpRequest) -> HttpResponse:
    """What no project was charged with lately: by account, service, tag, and narrower."""
    actor = actor_of(request)
    require_organisation_role(actor, write=False)
    window = last_months(actor.organisation_id)
    by = request.GET.get("by", DRILL_BY[0])
    try:
        filters = read_filters(request.GET.getlist("filter"))
        if by not in (*DRILL_BY, TAGS) and not by.startswith("tag:"):
            raise QuestionError("by", _("Choose one of the columns."))
        keys = table = None
        if window and by == TAGS:
            keys = nobodys_tag_keys(actor.organisation_id, window, filters=filters)
        elif window:
            table = nobodys_costs(actor.organisation_id, window, by=by, filters=filters)
    except QuestionError as error:
        messages.warning(request, error.message)
        return redirect("allocation_unallocated")
    texts = written_filters(filters)
    address = reverse("allocation_unallocated")
    context = {
        "window": window,
        "by": by,
        "tabs": [
            {
                "by": one,
                "url": f"{address}?{urlencode([('by', one), *(('filter', t) for t in texts)])}",
            }
            for one in (*DRILL_BY, TAGS)
        ],
        "table": table,
        "rows": drill_links(table, by, texts, may_change=may_change_rules(actor)) if table else [],
        "keys": None if keys is None else tag_links(keys, texts),
        "filters": texts,
        "address": address,
    }
    return render(request, "billing/allocation_unallocated.html", context)
