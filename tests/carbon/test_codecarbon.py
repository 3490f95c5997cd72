"""codecarbon's emissions.csv as energy of runs: once a run, in local time, GPUs only."""

from pathlib import Path

import pytest

from carbon.models import MeteredInterval
from carbon.services import PowerFileError
from runs.models import Device
from tests.carbon.builders import imported, write_csv

HEADER = (  # noqa: SIM905 - as the file has it
    "timestamp,project_name,run_id,experiment_id,duration,emissions,emissions_rate,cpu_power,"
    "gpu_power,ram_power,cpu_energy,gpu_energy,ram_energy,energy_consumed,country_name,"
    "country_iso_code,region,codecarbon_version,gpu_count,gpu_model,tracking_mode,on_cloud,pue"
).split(",")
ROW = {
    "timestamp": "2025-10-02T12:00:00",
    "project_name": "codecarbon",
    "run_id": "run-1",
    "duration": "7200.0",
    "emissions": "0.5",
    "gpu_energy": "1.000000001",
    "energy_consumed": "1.3",
    "gpu_count": "2.0",
    "gpu_model": "2 x NVIDIA A100-SXM4-80GB",
}


def file_of(folder: Path, *rows: dict[str, str]) -> Path:
    lines = [[{**ROW, **row}.get(name, "") for name in HEADER] for row in rows]
    return write_csv(folder / "emissions.csv", HEADER, lines)


@pytest.mark.django_db
def test_the_gpu_energy_of_a_run_is_booked_to_the_last_millijoule(tmp_path):
    report = imported(file_of(tmp_path, {}))

    found = list(MeteredInterval.objects.order_by("device_id"))
    assert [one.energy_millijoule for one in found] == [1_800_000_002, 1_800_000_002]
    assert found[0].end.isoformat() == "2025-10-02T12:00:00+00:00"
    assert (found[0].end - found[0].start).total_seconds() == 7_200
    assert set(Device.objects.values_list("model", flat=True)) == {"NVIDIA A100-SXM4-80GB"}
    assert report.accelerator_energy_kwh == pytest.approx(1.000000001, abs=1e-8)
    assert any("0.300 kWh" in one for one in report.notes)


@pytest.mark.django_db
def test_of_a_run_that_wrote_its_sums_several_times_the_longest_row_counts(tmp_path):
    early = {"timestamp": "2025-10-02T11:00:00", "duration": "3600", "gpu_energy": "0.5"}

    imported(file_of(tmp_path, early, {}, {"run_id": "run-2", "gpu_energy": "1.2"}))

    energy = sum(MeteredInterval.objects.values_list("energy_millijoule", flat=True))
    assert energy == 3_600_000_004 + 4_320_000_000


@pytest.mark.django_db
def test_a_run_without_gpus_books_nothing_and_a_repeat_changes_nothing(tmp_path):
    bare = {"run_id": "run-3", "gpu_energy": "0.0", "gpu_count": "", "gpu_model": ""}
    path = file_of(tmp_path, {}, bare)

    imported(path)
    again = imported(path)

    assert again.duplicates == again.rows == 2
    assert MeteredInterval.objects.count() == 2


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("field", "text", "said"),
    [
        ("timestamp", "yesterday", "row 3, field timestamp"),
        ("gpu_energy", "a lot", "kWh"),
        ("duration", "-5", "row 3, field duration"),
        ("gpu_count", "5000", "field gpu_count"),
        ("run_id", "", "field run_id"),
    ],
)
def test_what_cannot_be_read_refuses_the_file_and_names_the_place(tmp_path, field, text, said):
    with pytest.raises(PowerFileError, match=said):
        imported(file_of(tmp_path, {}, {"run_id": "run-9", field: text}))

    assert not MeteredInterval.objects.exists()
