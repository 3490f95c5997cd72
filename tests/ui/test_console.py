"""Commands answer with one JSON document or with words."""

import datetime as dt
import json
from decimal import Decimal
from io import StringIO
from typing import Any

from django.core.management import call_command

from ui.console import JsonCommand


class Costs(JsonCommand):
    def handle(self, *args: Any, **options: Any) -> None:
        self.say("reading…")
        self.emit({"cost": Decimal("1E+3"), "on": dt.date(2026, 11, 1)}, "one thousand")


def test_json_prints_one_document_with_money_as_text() -> None:
    out, err = StringIO(), StringIO()
    call_command(Costs(), "--json", stdout=out, stderr=err)
    assert json.loads(out.getvalue()) == {"cost": "1000", "on": "2026-11-01"}
    assert "reading" in err.getvalue()


def test_without_json_people_get_words() -> None:
    out = StringIO()
    call_command(Costs(), stdout=out)
    assert out.getvalue() == "reading…\none thousand\n"
