"""Every day field shows its day in both languages; what the browser draws of it is not tested."""

from datetime import date
from types import ModuleType

import pytest
from django import forms
from django.utils.translation import override

from billing import price_forms
from carbon import forms as carbon_forms
from planning import estimate_forms, plan_forms
from projects import forms as project_forms

MODULES = (price_forms, carbon_forms, estimate_forms, plan_forms, project_forms)


def _day_widgets(module: ModuleType) -> list[forms.DateInput]:
    return [
        field.widget
        for form in vars(module).values()
        if isinstance(form, type) and issubclass(form, forms.BaseForm)
        for field in getattr(form, "base_fields", {}).values()
        if isinstance(field.widget, forms.DateInput)
    ]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_a_day_reaches_the_date_picker_in_the_only_form_it_reads(
    module: ModuleType, language: str
) -> None:
    widgets = _day_widgets(module)
    assert widgets
    with override(language):
        shown = {widget.format_value(date(2026, 11, 21)) for widget in widgets}
    assert shown == {"2026-11-21"}
