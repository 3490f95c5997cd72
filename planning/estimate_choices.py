"""What the form of a question offers: names of the catalogue, places, presets, its tables."""

from typing import Any
from uuid import UUID

from carbon.factors import cloud_regions, shipped_grid_factors
from planning.estimate_bill_fields import ON_PREMISES, PARTS, field_name
from planning.estimate_forms import SHAPE_NUMBERS, SLIDERS, EstimateForm
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


def shape_fields(form: EstimateForm) -> list[Any]:
    """The whole numbers of a shape, in the order that they are read."""
    return [form[name] for name in SHAPE_NUMBERS]


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
        names = [field_name(part.key, row, column) for column, _text in part.columns]
        rows.append(
            {
                "label": label,
                "cells": [form[name] if name in form.fields else None for name in names],
            }
        )
    return {"title": part.title, "columns": [text for _name, text in part.columns], "rows": rows}


def _line(form: EstimateForm, row: int) -> dict[str, Any]:
    """One row of the table of lines, with the name of a listed line."""
    key = str(form[f"line{row}_key"].value() or "")
    listed = line_name(key)
    return {
        "listed": "" if not key or listed == key else listed,
        **{
            part: form[f"line{row}_{part}"]
            for part in ("key", "name", "percent", "base", "amount", "in_programme")
        },
    }
