"""Large counts as people write them in forms: 10B, 10T, 8.03e9; no other numbers."""

import re
from typing import Final

from django import forms
from django.utils.translation import gettext_lazy as _

SUFFIXES: Final = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
_COUNT: Final = re.compile(r"^(\d{1,30}(?:\.\d{1,30})?(?:E\+?\d{1,2})?)\s*([KMBT]?)$")


class CountField(forms.CharField):
    """A large count as people write it: 10B, 10T, 8.03e9."""

    default_error_messages = {
        "count": _("Write a count such as 10B (billion), 10T (trillion) or 8.03e9.")
    }

    def to_python(self, value: object) -> float | None:  # type: ignore[override]
        """The count as a float, or None when the field was left empty."""
        text = super().to_python(value)
        if text in self.empty_values:
            return None
        found = _COUNT.match(str(text).replace(",", "").replace("_", "").upper())
        if found is None:
            raise forms.ValidationError(self.error_messages["count"], code="count")
        return float(found[1]) * SUFFIXES[found[2]]


def short_count(count: float) -> str:
    """A count as people write it, exact.

    >>> short_count(1e13), short_count(8.03e9), short_count(8030261248.0)
    ('10T', '8.03B', '8030261248')
    """
    for suffix in ("T", "B", "M", "K"):
        if count >= SUFFIXES[suffix]:
            short = f"{count / SUFFIXES[suffix]:.6g}"
            if float(short) * SUFFIXES[suffix] == count:
                return f"{short}{suffix}"
    return f"{count:.0f}" if count.is_integer() and count < 1e15 else repr(count)
