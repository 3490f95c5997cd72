"""A watched folder: only where the operator allows it, only what has settled, no links."""

import json
import os
import time
from decimal import Decimal
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from billing.connectors import ConnectorError, connector_for
from billing.models import Delivery, Pull, Source
from billing.services import ask_for_due_pulls, ask_for_pull, connection_of, due_pulls
from tests.billing.builders import gzipped, total
from tests.billing.pull_builders import bill, codes, cur_manifest, make_source, pulled

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def folder(tmp_path, settings):
    settings.WATCHED_FOLDERS = [tmp_path / "drop"]
    (tmp_path / "drop" / "bills").mkdir(parents=True)
    return tmp_path / "drop" / "bills"


@pytest.fixture
def source(folder):
    return make_source("folder", {"path": str(folder)})


def drop(folder: Path, name: str, content: bytes, *, age_s: float = 3600) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (time.time() - age_s, time.time() - age_s))
    return path


def test_files_of_a_month_are_one_delivery(folder, source):
    drop(folder, "2026-05/a.csv", bill("2026-05", "1"))
    drop(folder, "2026-05/b.csv.gz", gzipped(bill("2026-05", "2")))

    assert pulled(source).state == Pull.State.OK
    assert pulled(source).state == Pull.State.NOTHING_NEW
    assert total() == Decimal(3)
    assert Delivery.objects.count() == 1


def test_a_file_that_may_still_be_on_its_way_waits(folder, source):
    path = drop(folder, "bill.csv", bill("2026-05", "1"), age_s=0)

    assert codes(pulled(source)) == ["changed"]
    os.utime(path, (time.time() - 60, time.time() - 60))
    assert pulled(source).state == Pull.State.OK


def test_a_copy_of_a_bucket_is_read_by_its_manifest(folder, source):
    drop(folder, "20260501-20260601/a1/x-1.csv", bill("2026-05", "1"), age_s=4000)
    listed = "exports/report/20260501-20260601/a1/x-1.csv"
    drop(folder, "20260501-20260601/x-Manifest.json", cur_manifest("a1", [listed]))

    assert pulled(source).state == Pull.State.OK
    assert total() == Decimal(1)


def test_i05_every_missing_short_or_extra_file_of_a_manifest_keeps_the_month_out(folder, source):
    parts = {f"p{number}.csv": bill("2026-05", str(number)) for number in (1, 2, 3)}
    manifest = {
        "period": "2026-05",
        "version": "v1",
        "files": [{"key": f"v1/{name}", "size": len(part)} for name, part in parts.items()],
    }
    drop(folder, "2026-05/manifest.json", json.dumps(manifest).encode())
    month = folder / "2026-05"
    for mask in range(1, 8):  # each subset that lacks something
        for number, (name, part) in enumerate(parts.items()):
            there = drop(month, f"v1/{name}", part)
            if mask >> number & 1:
                there.unlink()
        assert codes(pulled(source)) == ["missing"]
    for name, part in parts.items():
        drop(month, f"v1/{name}", part[:-1])
        assert codes(pulled(source)) == ["missing"] if name != "p3.csv" else ["size"]


def test_a_folder_outside_those_of_the_operator_is_refused(tmp_path, source, settings):
    for path in (tmp_path, "/etc", f"{source.connection['path']}/../../..", "relative", ""):
        source.connection = {"path": str(path)}
        with pytest.raises(ConnectorError) as refused:
            connector_for(connection_of(source))
        assert refused.value.code == "settings"
    settings.WATCHED_FOLDERS = []
    source.connection = {"path": str(tmp_path / "drop" / "bills")}
    with pytest.raises(ConnectorError):
        connector_for(connection_of(source))


def test_links_out_of_the_folder_are_not_followed(folder, source, tmp_path):
    secret = drop(tmp_path, "secret.csv", bill("2026-05", "1"))
    (folder / "link.csv").symlink_to(secret)
    (folder / "linked").symlink_to(tmp_path)
    (tmp_path / "drop" / "away").symlink_to("/etc")

    assert pulled(source).state == Pull.State.NOTHING_NEW
    source.connection = {"path": str(tmp_path / "drop" / "away")}
    with pytest.raises(ConnectorError):
        connector_for(connection_of(source))


def test_a_folder_that_is_gone_breaks_the_source(folder, source):
    folder.rmdir()

    pull = pulled(source)

    assert (pull.state, source.state) == (Pull.State.FAILED, Source.State.BROKEN)


def test_the_test_of_a_folder_says_what_it_found(folder, source):
    assert not connector_for(connection_of(source)).check().ok
    drop(folder, "bill.csv", bill("2026-05", "1"))

    report = connector_for(connection_of(source)).check()

    assert report.ok
    assert len(report.steps) == 4


def test_sources_are_pulled_when_their_time_has_come(source):
    now = timezone.now()
    make_source("folder", {}, name="paused", every_h=1, is_paused=True)
    make_source("upload", {}, name="uploads", every_h=1)
    make_source("folder", {}, name="never")
    Source.objects.filter(pk=source.pk).update(every_h=6)
    assert [one.name for one in due_pulls(now)] == ["pulled"]

    Source.objects.filter(pk=source.pk).update(tried_at=now)
    assert due_pulls(now) == []
    assert ask_for_due_pulls(now + timezone.timedelta(hours=6)) == 1


def test_a_pull_that_waits_is_not_asked_for_twice(source):
    assert ask_for_pull(source) == ask_for_pull(source)


def test_the_command_pulls_and_imports_and_says_what_is_not_in(folder, source, capsys):
    drop(folder, "2026-05.csv", bill("2026-05", "1.10"))
    call_command("pull_charges", "--source", "pulled", "--json")
    document = json.loads(capsys.readouterr().out)
    assert document["state"] == "ok"
    assert Decimal(document["deliveries"][0]["totals"][0]["billed_cost"]) == Decimal("1.10")
    assert total() == Decimal("1.10")

    drop(folder, "2026-06.csv", b"no,bill\n1,2\n")
    with pytest.raises(CommandError, match="Not everything is in"):
        call_command("pull_charges", "--source", "pulled")
    with pytest.raises(CommandError, match="no source named"):
        call_command("pull_charges", "--source", "nobody")
