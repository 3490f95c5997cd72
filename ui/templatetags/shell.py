"""What the frame of a page asks: which entry is current, which version runs."""

from typing import Any, Final

from django import template
from django.urls import NoReverseMatch, reverse

register = template.Library()

# A page whose URL name starts with one of these belongs to the entry on the right.
_FAMILIES: Final = (
    ("import", "imports"),
    ("mapping", "imports"),
    ("period_versions", "imports"),
    ("reconciliation", "imports"),
    ("allocation", "imports"),
    ("charge", "charges"),
    ("costs", "costs"),
    ("finding", "findings"),
    ("source", "sources"),
    ("estimate", "estimate_new"),
    ("power_now", "energy"),
    ("energy", "energy"),
    ("sender", "energy"),
    ("intensity", "energy"),
    ("factor", "energy"),
    ("instrument", "energy"),
    ("book", "energy"),
    ("site_intensity", "energy"),
    ("site", "sites"),
    ("power", "sites"),
    ("person", "people"),
    ("audit_trail", "people"),
    ("token", "tokens"),
    ("plan", "plan"),
    ("run_", "runs"),
    ("price", "prices"),
    ("exchange_rate", "prices"),
    ("catalogue", "catalogue"),
)


@register.inclusion_tag("ui/_nav_item.html", takes_context=True)
def nav_item(
    context: template.Context, url_name: str, icon: str, label: str, *, slug: str = ""
) -> dict[str, Any]:
    """`{% nav_item "imports" "inbox-stack" label %}`; a page not built yet leaves no entry."""
    try:
        url = reverse(url_name, args=[slug] if slug else [])
    except NoReverseMatch:
        url = ""
    match = getattr(context.get("request"), "resolver_match", None)
    name = (match.url_name if match else "") or ""
    family = next((entry for start, entry in _FAMILIES if name.startswith(start)), name)
    return {"url": url, "icon": icon, "label": label, "current": family == url_name}
