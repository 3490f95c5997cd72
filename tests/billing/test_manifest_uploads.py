"""A folder handed in with its manifest is taken as the manifest says: all of it, or nothing."""

import io
import json
import zipfile
from pathlib import Path

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.urls import reverse

from billing.models import Delivery
from jobs.services import run_job
from projects.records import OrganisationRole
from tests.billing.builders import charge, focus_csv, gzipped, imported, total
from tests.builders import organisation, person

pytestmark = pytest.mark.django_db(transaction=True)
FIRST = gzipped(focus_csv([charge(BilledCost="1")]))
SECOND = gzipped(focus_csv([charge(BilledCost="2")]))


def cur_manifest(*keys: str) -> bytes:
    return json.dumps(
        {
            "assemblyId": "a1",
            "billingPeriod": {"start": "20260501T000000.000Z", "end": "20260601T000000.000Z"},
            "bucket": "bills",
            "reportKeys": [f"export/20260501-20260601/a1/{key}" for key in keys],
        }
    ).encode()


def azure_manifest(**sizes: int) -> bytes:
    return json.dumps(
        {
            "byteCount": sum(sizes.values()),
            "blobs": [{"blobName": f"x/{n}.csv.gz", "byteCount": s} for n, s in sizes.items()],
            "runInfo": {
                "runId": "r1",
                "submittedTime": "2026-05-20T01:02:03.4567890Z",
                "startDate": "2026-05-01T00:00:00",
                "endDate": "2026-05-31T00:00:00",
            },
            "exportConfig": {"exportName": "daily", "timeFrame": "MonthToDate"},
        }
    ).encode()


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "a1").mkdir()
    (tmp_path / "a1" / "part-1.csv.gz").write_bytes(FIRST)
    (tmp_path / "a1" / "part-2.csv.gz").write_bytes(SECOND)
    manifest = cur_manifest("part-1.csv.gz", "part-2.csv.gz")
    (tmp_path / "export-Manifest.json").write_bytes(manifest)
    return tmp_path


def command(folder: Path, capsys) -> dict:
    organisation()
    call_command("import_charges", str(folder), "--source", "aws", "--json")
    document: dict = json.loads(capsys.readouterr().out)
    return document


def test_a_folder_is_imported_as_its_manifest_lists_it(folder, capsys):
    (folder / "a1" / "old.csv.gz").write_bytes(gzipped(focus_csv([charge(BilledCost="9")])))
    (folder / ".hidden").write_bytes(b"x")

    document = command(folder, capsys)

    assert document["ignored_files"] == ["old.csv.gz"]
    assert [one["file"] for one in document["batches"]] == ["part-1.csv.gz", "part-2.csv.gz"]
    assert str(total().normalize()) == "3"
    delivery = Delivery.objects.get()
    assert delivery.declared_periods == ["2026-05"]
    assert delivery.origin["assembly_id"] == "a1"


def test_a_missing_part_refuses_the_folder_and_names_it(folder, capsys):
    (folder / "a1" / "part-2.csv.gz").unlink()

    with pytest.raises(CommandError, match=r"part-2\.csv\.gz"):
        command(folder, capsys)

    assert not Delivery.objects.exists()
    assert not [path for path in Path(settings.LAKE_URL).rglob("*") if path.is_file()]


def test_a_part_of_another_size_is_refused():
    organisation()
    manifest = azure_manifest(**{"part-1": len(FIRST) + 1})

    with pytest.raises(Exception, match=f"{len(FIRST)} bytes"):
        imported(("manifest.json", manifest), ("part-1.csv.gz", FIRST))

    assert not Delivery.objects.exists()


def test_a_manifest_tells_when_the_export_was_made():
    manifest = azure_manifest(**{"part-1": len(FIRST)})

    delivery = imported(("part-1.csv.gz", FIRST), ("manifest.json", manifest))

    assert delivery.state == Delivery.State.PUBLISHED
    assert f"{delivery.version_at:%Y-%m-%d %H:%M:%S}" == "2026-05-20 01:02:03"


def test_two_manifests_are_refused():
    with pytest.raises(Exception, match="several manifests"):
        imported(("manifest.json", b"{}"), ("x-Manifest.json", b"{}"), ("a.csv.gz", FIRST))


@pytest.mark.parametrize("content", [b"{", b"[]", b"{}", b"[" * 5000])
def test_a_manifest_that_cannot_be_read_is_refused(content):
    with pytest.raises(Exception, match="manifest"):
        imported(("manifest.json", content), ("a.csv.gz", FIRST))


def test_the_page_takes_the_parts_with_their_manifest(client):
    client.force_login(person("admin", role=OrganisationRole.ADMIN))
    files = [
        SimpleUploadedFile("part-2.csv.gz", SECOND),
        SimpleUploadedFile("export-Manifest.json", cur_manifest("part-1.csv.gz", "part-2.csv.gz")),
        SimpleUploadedFile("part-1.csv.gz", FIRST),
        SimpleUploadedFile("more.csv.gz", gzipped(focus_csv([charge(BilledCost="9")]))),
    ]

    answer = client.post(reverse("import_upload"), {"file": files, "source": "aws", "period": ""})

    assert answer.status_code == 303
    run_job(Delivery.objects.get().job_id)
    assert str(total().normalize()) == "3"
    assert "more.csv.gz" in client.get(answer.url).content.decode()


def zipped(**files: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def test_an_archive_becomes_its_members():
    first, second = (focus_csv([charge(BilledCost=text)]) for text in ("1", "2"))
    archive = zipped(**{"may/a.csv": first, "may/b.csv": second, "may/same.csv": first})

    delivery = imported(("bills.zip", archive))

    assert [file.name for file in delivery.files.all()] == ["a.csv", "b.csv", "same.csv"]
    assert delivery.report["same_content"] == ["same.csv"]
    assert str(total().normalize()) == "3"


def test_an_archive_may_hold_its_manifest():
    first, second = (focus_csv([charge(BilledCost=text)]) for text in ("1", "2"))
    manifest = cur_manifest("a.csv")
    archive = zipped(**{"export-Manifest.json": manifest, "a.csv": first, "b.csv": second})

    delivery = imported(("bills.zip", archive))

    assert [file.name for file in delivery.files.all()] == ["a.csv"]
    assert str(total().normalize()) == "1"


def test_the_same_archive_again_is_known():
    archive = zipped(**{"a.csv": focus_csv([charge()])})
    first, again = imported(("bills.zip", archive)), imported(("again.zip", archive))

    assert first.pk == again.pk
