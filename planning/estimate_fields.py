"""Fields that a kickoff question needs: sliders, numbers, JSON."""

import json
from dataclasses import dataclass
from typing import Any, Final, Literal

from django import forms
from django.utils.translation import gettext_lazy as _

from ui.count_fields import CountField, short_count

__all__ = ["CountField", "short_count"]
_LONGEST_JSON: Final = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Slider:
    """The range that stands beside a number; the number may lie outside it."""

    low: float
    high: float
    step: float
    scale: Literal["linear", "log"] = "linear"
    shows: Literal["number", "count"] = "number"


class SpecPartField(forms.CharField):
    """Keys of SPEC that have no field of their own, as one JSON object."""

    widget = forms.Textarea

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("max_length", _LONGEST_JSON)
        kwargs.setdefault(
            "widget", forms.Textarea(attrs={"rows": 4, "spellcheck": "false", "class": "mono"})
        )
        super().__init__(required=False, **kwargs)

    def to_python(self, value: object) -> dict[str, Any]:  # type: ignore[override]
        """The object, empty when the field was left empty."""
        text = super().to_python(value)
        if text in self.empty_values:
            return {}
        try:
            found = json.loads(str(text))
        except (ValueError, RecursionError) as error:
            raise forms.ValidationError(
                _("This is no JSON: %(why)s"), params={"why": str(error)}
            ) from error
        if not isinstance(found, dict):
            raise forms.ValidationError(_('Write one JSON object, such as {"seed": 2}.'))
        return found

    def prepare_value(self, value: Any) -> Any:
        """An object as text; what was typed stays as it is."""
        if isinstance(value, dict):
            return json.dumps(value, indent=1, ensure_ascii=False) if value else ""
        return value


def number(label: Any, *, help_text: Any = "", placeholder: Any = "") -> forms.FloatField:
    """An optional number with its own unit in label or help."""
    return forms.FloatField(
        label=label,
        help_text=help_text,
        required=False,
        widget=forms.NumberInput(
            attrs={"step": "any", "inputmode": "decimal"}
            | ({"placeholder": placeholder} if placeholder else {})
        ),
    )


def exact(label: Any, *, help_text: Any = "", placeholder: Any = "") -> forms.DecimalField:
    """An optional amount of money, or a quantity that is billed."""
    return forms.DecimalField(
        label=label,
        help_text=help_text,
        required=False,
        min_value=0,
        max_digits=38,
        decimal_places=18,
        widget=forms.NumberInput(
            attrs={"step": "any", "inputmode": "decimal"}
            | ({"placeholder": placeholder} if placeholder else {})
        ),
    )


def whole(label: Any, *, help_text: Any = "") -> forms.IntegerField:
    """An optional whole number."""
    return forms.IntegerField(
        label=label,
        help_text=help_text,
        required=False,
        min_value=0,
        max_value=10**18,
        widget=forms.NumberInput(attrs={"step": "1", "inputmode": "numeric"}),
    )


def choice(
    label: Any, choices: list[tuple[str, Any]], *, help_text: Any = "", initial: str = ""
) -> forms.ChoiceField:
    """One of several; the first when nothing is chosen."""
    return forms.ChoiceField(
        label=label, choices=choices, help_text=help_text, required=False, initial=initial
    )


def merged(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Both objects in one; where both have a key `over` wins, objects are merged in turn."""
    both = dict(under)
    for key, value in over.items():
        known = both.get(key)
        is_object = isinstance(known, dict) and isinstance(value, dict)
        both[key] = merged(known, value) if is_object else value  # type: ignore[arg-type]
    return both
