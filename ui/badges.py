"""The words that say how a number is known or how a thing stands, each with its tone."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.utils.text import slugify
from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise


@dataclass(frozen=True, slots=True, kw_only=True)
class Badge:
    """One word in a pill; `tone` is neutral, info, good, warn, bad or synthetic."""

    key: str
    word: "str | _StrPromise"
    tone: str


_BADGES: Final = (
    # how a number is known
    Badge(key="metered", word=_("metered"), tone="good"),
    Badge(key="invoiced", word=_("invoiced"), tone="good"),
    Badge(key="measured", word=_("measured"), tone="good"),
    Badge(key="billed", word=_("billed"), tone="info"),
    Badge(key="accrued", word=_("accrued"), tone="warn"),
    Badge(key="estimated", word=_("estimated"), tone="warn"),
    Badge(key="forecast", word=_("forecast"), tone="info"),
    Badge(key="planned", word=_("planned"), tone="neutral"),
    Badge(key="not-set", word=_("not set"), tone="neutral"),
    Badge(key="missing", word=_("missing"), tone="warn"),
    Badge(key="synthetic", word=_("synthetic"), tone="synthetic"),
    # how a thing stands
    Badge(key="queued", word=_("queued"), tone="neutral"),
    Badge(key="running", word=_("running"), tone="info"),
    Badge(key="succeeded", word=_("done"), tone="good"),
    Badge(key="failed", word=_("failed"), tone="bad"),
    Badge(key="published", word=_("published"), tone="good"),
    Badge(key="refused", word=_("refused"), tone="bad"),
    Badge(key="draft", word=_("draft"), tone="neutral"),
    Badge(key="approved", word=_("approved"), tone="good"),
    Badge(key="superseded", word=_("superseded"), tone="neutral"),
    Badge(key="active", word=_("active"), tone="good"),
    Badge(key="expired", word=_("expired"), tone="neutral"),
    Badge(key="revoked", word=_("revoked"), tone="bad"),
    Badge(key="within-plan", word=_("within plan"), tone="good"),
    Badge(key="above-plan", word=_("above plan"), tone="warn"),
    Badge(key="over-band", word=_("over 2.0×"), tone="bad"),
    # plain tones, for words of the page's own
    Badge(key="neutral", word="", tone="neutral"),
    Badge(key="info", word="", tone="info"),
    Badge(key="good", word="", tone="good"),
    Badge(key="warn", word="", tone="warn"),
    Badge(key="bad", word="", tone="bad"),
)
_BY_KEY: Final = {badge.key: badge for badge in _BADGES}


def badge_of(key: str) -> Badge:
    """The badge of this key; an unknown key becomes a neutral badge that says the key itself."""
    slug = slugify(str(key).replace("_", "-")) or "neutral"
    return _BY_KEY.get(slug) or Badge(key="neutral", word=str(key), tone="neutral")
