"""Bills whose lake is a bucket: imported on one machine, answered and verified on another."""

from decimal import Decimal
from pathlib import Path
from uuid import uuid4

import pytest

from billing.checks import verify
from billing.models import ChargeSlice, Delivery
from billing.services import sweep_lake
from jobs.models import Job
from tests.billing.builders import costing, focus_csv, hand_in, imported, organisation, total
from tests.s3_server import KEYS, REGION, S3Server, s3_server

__all__ = ["s3_server"]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def bucket(s3_server: S3Server, settings, tmp_path, monkeypatch) -> str:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    name = s3_server.bucket(f"lake-{uuid4()}")
    settings.LAKE_URL = f"s3://{name}/lake"
    settings.LAKE_S3_ENDPOINT_URL = s3_server.url
    settings.LAKE_S3_REGION = REGION
    settings.LAKE_CACHE_DIR = tmp_path / "machine-1"
    return name


def test_an_import_of_one_machine_is_verified_on_another(bucket, settings, tmp_path):
    delivery = imported(focus_csv([costing("1.10"), costing("2.123456789012345678")]))
    assert delivery.state == Delivery.State.PUBLISHED

    settings.LAKE_CACHE_DIR = tmp_path / "machine-2"

    assert total() == Decimal("3.223456789012345678")
    assert verify(organisation().pk) == []
    assert sweep_lake(grace_s=0)["slices"] == 0
    assert verify(organisation().pk) == []


def test_a_job_runs_on_a_machine_that_did_not_receive_the_file(bucket, settings, monkeypatch):
    monkeypatch.setattr("tests.billing.builders.run_job", lambda job_id: None)
    receipt = hand_in(focus_csv([costing("1.10")]))
    monkeypatch.undo()
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)

    settings.LAKE_CACHE_DIR = Path(settings.LAKE_CACHE_DIR).with_name("machine-2")
    from jobs.services import run_job

    run_job(receipt.job_id)

    assert total() == Decimal("1.10")


def test_a_lost_file_is_found_missing(bucket, s3_server):
    imported(focus_csv([costing("1.10")]))
    (charge_slice,) = ChargeSlice.objects.all()
    s3_server.client().delete_object(Bucket=bucket, Key=f"lake/{charge_slice.path}")

    assert [finding.code for finding in verify(organisation().pk)] == ["charges_file_missing"]


def test_a_bucket_that_refuses_leaves_nothing_published_and_the_job_is_tried_again(
    bucket, settings, monkeypatch
):
    monkeypatch.setattr("tests.billing.builders.run_job", lambda job_id: None)
    receipt = hand_in(focus_csv([costing("1.10")]))
    monkeypatch.undo()
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    from jobs.services import run_job

    monkeypatch.setattr("lake.remote.Bucket.upload", _refuse("cannot write s3://…: SlowDown"))
    run_job(receipt.job_id)

    assert Delivery.objects.get(pk=receipt.delivery_id).state == Delivery.State.RECEIVED
    assert not ChargeSlice.objects.exists()
    assert "SlowDown" in Job.objects.get(pk=receipt.job_id).error


def _refuse(why: str):
    from lake.places import LakeError

    def upload(self, source, path):
        raise LakeError(why)

    return upload
