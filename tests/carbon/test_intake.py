"""What cannot be true is set aside and counted; what cannot be read is refused whole."""

from datetime import timedelta

import pytest

from carbon.checks import verify
from carbon.models import MeteredInterval, PowerSample, QuarantinedPower
from carbon.selectors import deliveries, emissions_summary
from carbon.services import PowerFileError
from runs.models import Device, Site
from tests.builders import organisation
from tests.carbon.builders import (
    INTERVALS,
    NOW,
    SAMPLES,
    START,
    imported,
    instant,
    interval,
    samples,
    site,
    write_csv,
)

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
KWH = 3_600_000_000


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ((instant(START), "GPU-9", "-1"), "negative"),
        ((instant(START), "GPU-9", "nan"), "not_a_number"),
        ((instant(START), "GPU-9", ""), "not_a_number"),
        ((instant(START), "GPU-9", "7000"), "above_the_power_limit"),
        ((instant(NOW + timedelta(minutes=6)), "GPU-9", "1"), "in_the_future"),
        (("1970-01-21T00:00:00Z", "GPU-9", "1"), "before_2010"),
    ],
)
def test_an_impossible_sample_is_set_aside_and_the_rest_stored(tmp_path, row, reason):
    report = imported(write_csv(tmp_path / "p.csv", SAMPLES, [*samples(), row]))
    assert (report.rows, report.rejected, report.reasons) == (242, 1, {reason: 1})
    assert report.accelerator_energy_kwh == pytest.approx(0.65)
    assert QuarantinedPower.objects.get().reason == reason


def test_the_catalogue_limits_what_a_known_model_can_draw(tmp_path):
    rows = [(instant(START), "GPU-9", "900", "NVIDIA H100 80GB HBM3")]
    report = imported(write_csv(tmp_path / "p.csv", (*SAMPLES, "model"), rows))
    assert report.reasons == {"above_the_power_limit": 1}
    assert Device.objects.get().accelerator_key == "h100-sxm-80gb"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (interval(START, START, 1), "end_not_after_start"),
        (interval(START + HOUR, START, 1), "end_not_after_start"),
        (interval(START, START + HOUR, -1), "negative"),
        (interval(START, START + HOUR, 7 * KWH), "above_the_power_limit"),
        (interval(START, START + timedelta(days=32), 1), "longer_than_31_days"),
        (interval(NOW, NOW + HOUR, 1), "in_the_future"),
    ],
)
def test_an_impossible_interval_is_set_aside(tmp_path, row, reason):
    good = interval(START, START + HOUR, KWH // 2, device="GPU-1")
    report = imported(write_csv(tmp_path / "p.csv", INTERVALS, [good, row]))
    assert report.reasons == {reason: 1}
    assert report.accelerator_energy_kwh == pytest.approx(0.5)


def test_an_interval_that_overlaps_another_one_is_set_aside(tmp_path):
    first = interval(START, START + HOUR, KWH // 2)
    second = interval(START + HOUR / 2, START + 2 * HOUR, KWH // 2)
    report = imported(write_csv(tmp_path / "p.csv", INTERVALS, [first, second]))
    assert report.reasons == {"overlaps_another_interval": 1}
    later = imported(write_csv(tmp_path / "q.csv", INTERVALS, [second]))
    assert later.reasons == {"overlaps_another_interval": 1}
    assert MeteredInterval.objects.count() == 1


def test_another_value_for_a_known_instant_is_set_aside_and_the_first_stays(tmp_path):
    imported(write_csv(tmp_path / "p.csv", SAMPLES, samples(count=2)))
    report = imported(write_csv(tmp_path / "q.csv", SAMPLES, samples(count=2, power_w=640)))
    assert report.reasons == {"another_value_is_stored": 2}
    assert set(PowerSample.objects.values_list("power_w", flat=True)) == {650.0}


def test_a_device_of_another_site_is_not_counted_twice(tmp_path):
    path = write_csv(tmp_path / "p.csv", SAMPLES, samples())
    imported(path, site_name="hall-1")
    report = imported(path, site_name="hall-2")
    assert report.reasons == {"device_of_another_site": 241}
    whole = emissions_summary(organisation().pk, None)
    assert whole.accelerator_energy_kwh == pytest.approx(0.65)


@pytest.mark.parametrize(
    ("header", "row", "words"),
    [
        (SAMPLES, (instant(START), "GPU-1", "6,5"), ["p.csv", "row 3", "power_w", "(W)"]),
        (SAMPLES, ("yesterday", "GPU-1", "1"), ["p.csv", "row 3", "field at"]),
        (SAMPLES, (instant(START), "", "1"), ["p.csv", "row 3", "device_uuid"]),
        (
            INTERVALS,
            (instant(START), instant(START + HOUR), "GPU-1", "1.5"),
            ["row 3", "energy_millijoule", "mJ"],
        ),
        (("when", "device_uuid", "power_w"), ("a", "b", "1"), ["row 1", "at,device_uuid,power_w"]),
    ],
)
def test_an_unreadable_file_is_refused_whole_and_the_place_named(tmp_path, header, row, words):
    good = {
        SAMPLES: (instant(START), "GPU-0", "1"),
        INTERVALS: (instant(START), instant(START + HOUR), "GPU-0", "1"),
    }.get(header, row)
    with pytest.raises(PowerFileError) as refusal:
        imported(write_csv(tmp_path / "p.csv", header, [good, row]))
    assert all(word in str(refusal.value) for word in words), str(refusal.value)
    assert not PowerSample.objects.exists()
    assert not Site.objects.exists()


def test_an_unreadable_second_file_leaves_nothing_of_the_first(tmp_path):
    good = write_csv(tmp_path / "a.csv", SAMPLES, samples())
    bad = write_csv(tmp_path / "b.csv", SAMPLES, [("x", "y", "z")])
    with pytest.raises(PowerFileError):
        imported(good, bad)
    assert not PowerSample.objects.exists()


def test_a_truncated_gzip_is_refused(tmp_path):
    path = write_csv(tmp_path / "p.csv.gz", SAMPLES, samples(), zipped=True)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(PowerFileError):
        imported(path)


def test_unknown_columns_are_named_and_do_no_harm(tmp_path):
    rows = [(*row, "37") for row in samples()]
    report = imported(write_csv(tmp_path / "p.csv", (*SAMPLES, "temperature_c"), rows))
    assert report.unknown_columns == ("temperature_c",)
    assert report.rejected == 0


def test_metered_intervals_win_over_samples_whichever_comes_first(tmp_path):
    meter = write_csv(tmp_path / "m.csv", INTERVALS, [interval(START, START + HOUR / 2, KWH // 4)])
    power = write_csv(tmp_path / "p.csv", SAMPLES, samples())
    for first, second, name in ((meter, power, "a"), (power, meter, "b")):
        for path in (first, second):
            text = path.read_text().replace("GPU-", f"{name}-")
            copy = tmp_path / f"{name}-{path.name}"
            copy.write_text(text)
            imported(copy, site_name=name)
        found = emissions_summary(organisation().pk, None, site_id=site(name).site_id)
        assert found.accelerator_energy_kwh == pytest.approx(0.25 + 0.325)
    assert verify(organisation().pk) == ()


def test_deliveries_are_remembered_once(tmp_path):
    path = write_csv(tmp_path / "p.csv", SAMPLES, samples())
    imported(path)
    imported(path)
    (row,) = deliveries(organisation().pk)
    assert (row.name, row.rows, row.duplicates) == ("p.csv", 241, 0)
