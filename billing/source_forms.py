"""What people type to connect a source: where it lies, its credential, its schedule."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from billing.adapters import FORMATS
from billing.models import Source
from billing.services.sources import SourceWish
from billing.source_kinds import (
    FORMAT_NAMES,
    LONG,
    NUMBER,
    OPTIONS,
    SCHEDULES,
    SourceField,
    SourceKind,
)

SECRET = "secret_"  # noqa: S105  # the start of a field's name
PLACE = "place_"


class SourceForm(forms.Form):
    """One source. A stored credential is never filled in; what is typed replaces it."""

    name = forms.CharField(
        label=_("Name"),
        max_length=120,
        help_text=_("What it is called here, such as aws-payer."),
    )
    bill_format = forms.ChoiceField(label=_("Format"))
    every_h = forms.TypedChoiceField(label=_("Pulled"), coerce=int)

    def __init__(self, data: Any = None, *, kind: SourceKind, source: Source | None) -> None:
        super().__init__(data, initial=_initial(source))
        self.kind, self.source = kind, source
        _choose(self.fields["bill_format"], [(key, FORMAT_NAMES.get(key, key)) for key in FORMATS])
        _choose(self.fields["every_h"], list(SCHEDULES.items()))
        for one in kind.fields:
            self.fields[f"{PLACE}{one.name}"] = _field(one)
        for one in kind.secret_fields:
            self.fields[f"{SECRET}{one.name}"] = _secret_field(one)

    def clean(self) -> dict[str, Any]:
        """Read the options of a file store, one name=value a line."""
        for one in self.kind.fields:
            name = f"{PLACE}{one.name}"
            if one.shape == OPTIONS and self.cleaned_data.get(name):
                try:
                    self.cleaned_data[name] = _options_of(self.cleaned_data[name])
                except ValidationError as error:
                    self.add_error(name, error)
        return self.cleaned_data

    def wish(self) -> SourceWish:
        """The source as services take it."""
        given = self.cleaned_data
        return SourceWish(
            name=given["name"].strip(),
            kind=self.kind.key,
            connection={
                one.name: _stripped(given[f"{PLACE}{one.name}"])
                for one in self.kind.fields
                if given.get(f"{PLACE}{one.name}") not in (None, "")
            },
            bill_format=given["bill_format"],
            every_h=given["every_h"] or None,
            is_paused=self.source.is_paused if self.source is not None else False,
            secret={
                one.name: given[f"{SECRET}{one.name}"].strip()
                for one in self.kind.secret_fields
                if given.get(f"{SECRET}{one.name}")
            },
        )

    def show_errors(self, error: ValidationError) -> None:
        """Put what the service refused beside the field that it means."""
        if not hasattr(error, "error_dict"):
            self.add_error(None, error)
            return
        for name, messages in error.message_dict.items():
            field = name if name in self.fields else f"{PLACE}{name}"
            for message in messages:
                self.add_error(field if field in self.fields else None, message)

    def places(self) -> list[forms.BoundField]:
        """The fields of where it lies."""
        return [self[f"{PLACE}{one.name}"] for one in self.kind.fields if not one.is_advanced]

    def advanced(self) -> list[forms.BoundField]:
        """The fields that are seldom needed."""
        return [self[f"{PLACE}{one.name}"] for one in self.kind.fields if one.is_advanced]

    def secrets(self) -> list[forms.BoundField]:
        """The fields of a stored credential."""
        return [self[f"{SECRET}{one.name}"] for one in self.kind.secret_fields]

    def has_advanced_errors(self) -> bool:
        """Whether the folded part must be open."""
        return any(field.errors for field in self.advanced())


def _initial(source: Source | None) -> dict[str, Any]:
    if source is None:
        return {"every_h": 6}
    places = {
        f"{PLACE}{name}": _option_lines(value) if isinstance(value, dict) else value
        for name, value in source.connection.items()
    }
    return {
        "name": source.name,
        "bill_format": source.bill_format,
        "every_h": source.every_h or 0,
        **places,
    }


def _choose(field: forms.Field, choices: list[tuple[Any, Any]]) -> None:
    if isinstance(field, forms.ChoiceField):
        field.choices = choices


def _field(one: SourceField) -> forms.Field:
    if one.shape == NUMBER:
        return forms.IntegerField(
            label=one.label,
            help_text=one.help_text,
            required=one.required,
            min_value=0,
            max_value=1_000_000,
        )
    widget = forms.Textarea(attrs={"rows": 3}) if one.shape == OPTIONS else forms.TextInput()
    widget.attrs |= {"autocomplete": "off", "spellcheck": "false"}
    return forms.CharField(
        label=one.label,
        help_text=one.help_text,
        required=one.required,
        max_length=1000,
        widget=widget,
    )


def _secret_field(one: SourceField) -> forms.Field:
    """Never rendered with a value, not even one that was just typed."""
    attrs = {"autocomplete": "new-password", "spellcheck": "false"}
    widget = _BlankTextarea(attrs={**attrs, "rows": 4}) if one.shape == LONG else None
    return forms.CharField(
        label=one.label,
        help_text=one.help_text,
        required=False,
        max_length=20_000,
        widget=widget or forms.PasswordInput(attrs=attrs, render_value=False),
    )


class _BlankTextarea(forms.Textarea):
    """A text area that never says what was typed into it."""

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        """Like a password: empty each time."""
        return super().get_context(name, None, attrs)


def _stripped(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


def _options_of(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in text.splitlines():
        if line.strip():
            name, sign, value = line.partition("=")
            if not sign or not name.strip().isidentifier():
                raise ValidationError(_("Write name=value, one a line."))
            found[name.strip()] = value.strip()
    return found


def _option_lines(options: dict[str, Any]) -> str:
    return "\n".join(f"{name}={value}" for name, value in options.items())
