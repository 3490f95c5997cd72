"""What pages show of price feeds, put together from their books; nothing is written."""

from typing import Any
from uuid import UUID

from django.urls import reverse

from billing.models import PriceBook
from billing.price_feeds.contract import FEED_NAMES, ignored_in_words
from billing.price_selectors import price_books
from jobs.records import UnknownJobError
from jobs.selectors import job_progress


def feed_rows(organisation_id: UUID) -> list[dict[str, Any]]:
    """Every book that a price feed fills: what it asks for, and how it went last."""
    return [_row(book) for book in price_books(organisation_id).exclude(feed="")]


def _row(book: PriceBook) -> dict[str, Any]:
    asked = book.feed_settings
    last = asked.get("last", {})
    progress = _progress(book)
    ignored = ignored_in_words(last.get("ignored", {}))
    error = (book.refresh_error or {}).get("message", "")
    return {
        "book": book,
        "name": FEED_NAMES.get(book.feed, book.feed),
        "regions": asked.get("regions", []),
        "last": last,
        "ignored": ignored,
        "error": error,
        "has_more": bool(progress or error or ignored),
        "progress": progress,
        "progress_url": reverse("job_progress", args=[progress.job_id]) if progress else "",
    }


def _progress(book: PriceBook) -> Any:
    """The job that refreshes the book right now, or None."""
    try:
        progress = job_progress(UUID(book.feed_settings["job"]), book.organisation_id)
    except (KeyError, ValueError, UnknownJobError):
        return None
    return None if progress.is_over else progress
