"""The ECB's files of rates are taken as they are downloaded; what is no such file is refused."""

import io
import zipfile
from datetime import date
from decimal import Decimal

import pytest

from billing.models import ExchangeRate
from billing.price_records import PricesRefusedError
from billing.services import import_exchange_rates
from tests.billing.builders import operator

pytestmark = pytest.mark.django_db
HISTORY = (
    b"Date,USD,JPY,CYP,TRL,\n"
    b"2026-06-04,1.0800,169.10,N/A,N/A,\n"
    b"2026-06-05,1.1000,,N/A,N/A,\n"
    b"1999-01-04,1.1789,133.73,0.58231,372274,\n"
)
DAILY_CSV = b"Date, USD, JPY, \n05 June 2026, 1.1000, 170.00, \n"
DAILY_XML = b"""<?xml version="1.0" encoding="UTF-8"?>
<gesmes:Envelope xmlns:gesmes="http://www.gesmes.org/xml/2002-08-01"
    xmlns="http://www.ecb.int/vocabulary/2002-08-01/eurofxref">
  <gesmes:subject>Reference rates</gesmes:subject>
  <gesmes:Sender><gesmes:name>European Central Bank</gesmes:name></gesmes:Sender>
  <Cube><Cube time='2026-06-05'>
    <Cube currency='USD' rate='1.1000'/>
    <Cube currency='JPY' rate='170.00'/>
  </Cube></Cube>
</gesmes:Envelope>
"""


def zipped(**files: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(f"{name}.csv", content)
    return out.getvalue()


def brought(content: bytes) -> dict[tuple[str, date], Decimal]:
    import_exchange_rates(operator(), content, file="rates")
    return {(one.quote, one.on_date): one.rate for one in ExchangeRate.objects.filter(base="EUR")}


def refused(content: bytes) -> str:
    with pytest.raises(PricesRefusedError) as caught:
        import_exchange_rates(operator(), content, file="rates")
    assert not ExchangeRate.objects.exists()
    return str(caught.value)


def test_the_history_has_gaps_days_in_any_order_and_currencies_of_old():
    found = brought(HISTORY)
    assert found[("USD", date(2026, 6, 5))] == Decimal("1.1")
    assert found[("CYP", date(1999, 1, 4))] == Decimal("0.58231")
    assert ("JPY", date(2026, 6, 5)) not in found
    assert len(found) == 7


def test_the_zip_brings_the_same_rates():
    assert brought(zipped(history=HISTORY)) == brought(HISTORY)


def test_the_daily_csv_writes_its_day_in_words():
    assert brought(DAILY_CSV) == {
        ("USD", date(2026, 6, 5)): Decimal("1.1"),
        ("JPY", date(2026, 6, 5)): Decimal("170"),
    }


def test_the_daily_xml_brings_the_same_rates_as_the_daily_csv():
    assert brought(DAILY_XML) == brought(DAILY_CSV)
    assert ExchangeRate.objects.count() == 2


def test_a_document_type_or_entity_is_refused_before_anything_is_read():
    laughs = b'<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>'
    bomb = DAILY_XML.replace(b"?>\n", b"?>\n" + laughs, 1)
    assert "document type" in refused(bomb)
    outside = b'<!DOCTYPE x SYSTEM "file:///etc/passwd">'
    assert "document type" in refused(DAILY_XML.replace(b"?>\n", b"?>\n" + outside, 1))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (DAILY_XML[:200], "not XML"),
        (b"<html><body>Not found</body></html>", "no rate of the European Central Bank"),
        (DAILY_XML.replace(b"1.1000", b"1,1"), "row 7"),
        (DAILY_XML.replace(b"1.1000", b"N/A"), "row 7"),
        (DAILY_XML.replace(b"currency='USD'", b"currency='USDT'"), "row 7"),
        (DAILY_XML.replace(b"2026-06-05", b"2026-06-31"), "no such day"),
        (zipped(history=HISTORY, other=HISTORY), "2 files"),
        (zipped(history=HISTORY)[:-30], "cannot be opened"),
        (zipped(history=b"x" * (21 * 2**20)), "more than"),
    ],
)
def test_what_is_no_file_of_rates_is_refused_with_its_place(content, words):
    assert words in refused(content)
