"""What the form of a question offers: names of the catalogue, places, presets, its tables."""

from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _

from carbon.factors import cloud_regions, shipped_grid_factors
from planning.estimate_bill_fields import ON_PREMISES, PARTS, field_name
from planning.estimate_forms import SLIDERS, EstimateForm
from planning.estimate_line_fields import ROWS
from planning.estimate_words import preset_name
from planning.names import line_name
from planning.presets import PRESETS
from runs.selectors import accelerators


def form_context(organisation_id: UUID, form: EstimateForm) -> dict[str, Any]:
    """The form with everything that its page offers."""
    return {
        "form": form,
        "sliders": SLIDERS,
        "presets": [(key, preset_name(key)) for key in PRESETS],
        "catalogue": accelerators(organisation_id=organisation_id),
        "places": _places(),
        "parts": [_part(form, index) for index in range(len(PARTS))],
        "on_premises": [form[f"on_premises_{name}"] for name, _label in ON_PREMISES],
        "own_lines": [_line(form, row) for row in range(ROWS)],
    }


def _places() -> list[tuple[str, str]]:
    """Regions and countries by the text that names them."""
    regions = [(f"{cloud}:{name}", row.location) for (cloud, name), row in cloud_regions().items()]
    countries = {
        (row.zone, row.zone_name) for row in shipped_grid_factors() if row.zone_type == "country"
    }
    return [*sorted(regions), *sorted(countries)]


def _part(form: EstimateForm, index: int) -> dict[str, Any]:
    """One table of the bill: its rows with the fields that exist."""
    part = PARTS[index]
    rows = []
    for row, label in part.rows:
        cells = [
            {"field": form[name], "column": text}
            for column, text in part.columns
            if (name := field_name(part.key, row, column)) in form.fields
        ]
        rows.append({"label": label, "cells": cells})
    return {"title": part.title, "rows": rows}


def _line(form: EstimateForm, row: int) -> dict[str, Any]:
    """One row of the table of lines, with the name of a listed line."""
    key = str(form[f"line{row}_key"].value() or "")
    listed = line_name(key)
    cells = [
        {"field": form[f"line{row}_{part}"], "column": column}
        for part, column in (
            ("percent", _("Percent")),
            ("base", _("Of what")),
            ("amount", _("or amount")),
        )
    ]
    return {
        "listed": "" if not key or listed == key else listed,
        "row": row + 1,
        "cells": cells,
        **{part: form[f"line{row}_{part}"] for part in ("key", "name", "in_programme")},
    }
