"""Pulling grid intensity: revisions supersede, holes fall back, the books follow, rest is kept."""

import json
import threading
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command
from django.db import connection

from audit.models import AuditEntry
from carbon import intensity_feeds as feeds
from carbon.attribution import microsecond_of
from carbon.intensity import (
    intensities_for,
    intensity_as_of,
    intensity_days,
    marginal_hours,
    upstream_for,
)
from carbon.intensity_sources import SourceError, SourceWish, save_source, set_enabled
from carbon.models import HourlyIntensity, IntensitySource, SiteZone
from jobs.models import Job
from jobs.records import JobContext, PermanentJobError
from tests.carbon.builders import SAMPLES, imported, operator, samples, site, write_csv
from tests.carbon.intensity_servers import HOUR, Grid, Hour, serving

pytestmark = pytest.mark.django_db
NOW = datetime(2025, 10, 20, 12, 30, tzinfo=UTC)
TODAY = NOW.replace(hour=0, minute=0)


@pytest.fixture
def grid(settings, monkeypatch):
    settings.PRIVATE_HOSTS = ["127.0.0.1"]
    settings.SECRETS_KEY = Fernet.generate_key().decode()
    monkeypatch.setattr("projects.web_client.time", SimpleNamespace(sleep=lambda _s: None))
    return Grid(now=NOW)


@pytest.fixture
def url(grid):
    with serving(grid) as found:
        yield found


def connect(url, zone="DE", *, provider="electricitymaps", name="Maps", place=None, **more):
    doors = {"electricitymaps": "em", "watttime": "wt", "uk_carbon_intensity": "uk"}
    secrets = {
        "electricitymaps": {"token": "em-token"},
        "watttime": {"username": "ada", "password": "pass"},
    }
    wish = SourceWish(
        provider=provider,
        name=name,
        base_url=f"{url}/{doors[provider]}" if provider in doors else "",
        credential=secrets.get(provider, {}),
        zones={(place or site()).site_id: zone} if zone else {},
        **more,
    )
    return save_source(operator(), wish, now=NOW)


def chosen(start=TODAY, end=TODAY + 24 * HOUR, place=None):
    return {
        (key - microsecond_of(start)) // 3_600_000_000: one
        for key, one in intensities_for(
            place or site(), microsecond_of(start), microsecond_of(end)
        ).items()
    }


def pull(source, now=NOW, **more):
    source.refresh_from_db()
    return feeds.pull_source(source, now=now, **more)


def test_a_pull_stores_the_hours_and_the_books_choose_them(grid, url):
    source = connect(url)
    grid.fill("DE", TODAY, [300.0, 310.0])
    pulled = pull(source)
    assert (pulled.stored.new, pulled.errors) == (2, {})
    found = chosen()
    assert {hour: one.value for hour, one in found.items()} == {0: 300.0, 1: 310.0}
    factor = found[0]
    assert (factor.level, factor.basis, factor.year) == ("hour", "direct, average, measured", 2025)
    assert str(source.pk) in factor.factor_id
    assert "2025-10-20T00Z" in factor.factor_id
    source.refresh_from_db()
    assert (source.state, source.last_ok_at) == ("ok", NOW)


def test_pulling_again_changes_nothing(grid, url):
    source = connect(url)
    grid.fill("DE", TODAY, [300.0, 310.0])
    pull(source)
    again = pull(source, now=NOW + timedelta(minutes=10))
    assert (again.stored.new, again.stored.revised, again.stored.unchanged) == (0, 0, 2)
    assert HourlyIntensity.objects.count() == 2


def test_an_estimate_that_is_revised_supersedes_and_the_old_answer_stays_readable(grid, url):
    source = connect(url)
    grid.fill("DE", TODAY, [300.0], is_estimated=True)
    pull(source)
    grid.hours["DE"][TODAY] = Hour(280.0, updated_at=TODAY + 6 * HOUR)
    later = NOW + timedelta(hours=1)
    assert pull(source, now=later).stored.revised == 1
    factor = chosen()[0]
    assert (factor.value, factor.basis) == (280.0, "direct, average, measured")
    assert "revision 1" in factor.version
    start = microsecond_of(TODAY)
    before = intensity_as_of(site(), start, start + 3_600_000_000, as_of=NOW + timedelta(minutes=1))
    assert [(one.value, "estimated" in one.basis) for one in before.values()] == [(300.0, True)]


def test_an_older_word_that_comes_late_changes_nothing(grid, url):
    source = connect(url)
    grid.hours["DE"] = {TODAY: Hour(280.0, updated_at=TODAY + 6 * HOUR)}
    pull(source)
    grid.hours["DE"] = {TODAY: Hour(300.0, updated_at=TODAY + 2 * HOUR)}
    assert pull(source, now=NOW + HOUR).stored.older == 1
    assert chosen()[0].value == 280.0


def test_a_hole_falls_to_the_next_source_and_then_to_nothing(grid, url):
    first = connect(url, "DE", name="first", position=1)
    second = connect(url, "GB", provider="uk_carbon_intensity", name="second", position=2)
    grid.fill("DE", TODAY, [300.0, None, None])
    grid.fill("GB", TODAY, [250.0, 260.0])
    for one in (first, second):
        pull(one)
    found = chosen()
    assert {hour: one.value for hour, one in found.items()} == {0: 300.0, 1: 261.0}
    assert "with losses of the grid" in found[1].basis
    (day,) = intensity_days(site(), TODAY.date(), TODAY.date())
    assert (day.measured, day.estimated, day.yearly) == (2, 0, 22)
    (day,) = intensity_days(site(), TODAY.date(), TODAY.date(), until=NOW)
    assert (day.hours, day.yearly) == (12, 10)


def test_direct_is_booked_and_upstream_is_the_same_sources_difference(grid, url):
    source = connect(url, basis="both")
    grid.fill("DE", TODAY, [300.0])
    pull(source)
    assert chosen()[0].value == 300.0
    start = microsecond_of(TODAY)
    assert upstream_for(site(), start, start + 3_600_000_000) == {start: 25.0}


def test_a_marginal_signal_is_never_booked(grid, url):
    source = connect(url, "PJM_DC", provider="watttime")
    grid.fill("PJM_DC", TODAY, [394.6])
    pulled = pull(source)
    assert pulled.errors == {}
    assert chosen() == {}
    start = microsecond_of(TODAY)
    assert start in marginal_hours(site(), start, start + 3_600_000_000)


def test_the_hours_of_energy_before_are_backfilled_once(grid, url, tmp_path):
    early = TODAY - timedelta(days=35)
    grid.fill("DE", early, [100.0] * (35 * 24 + 12))
    imported(write_csv(tmp_path / "p.csv", SAMPLES, samples(start=early)), now=NOW)
    source = connect(url)
    assert pull(source).stored.new == 35 * 24 + 12
    assert SiteZone.objects.get().backfilled_from == early
    grid.asked.clear()
    pull(source, now=NOW + timedelta(minutes=30))
    assert [path for path, _query in grid.asked if path.endswith("past-range")] == []


def test_a_backfill_that_was_cut_goes_on_where_it_was(grid, url, tmp_path):
    early = TODAY - timedelta(days=65)
    grid.fill("DE", early, [100.0] * (65 * 24 + 12))
    imported(write_csv(tmp_path / "p.csv", SAMPLES, samples(start=early)), now=NOW)
    source = connect(url)
    # The last day, a month in three questions, then the wire breaks for good.
    grid.faults = [None] * 6 + [(403, {}, {"message": "cut"})]
    first = pull(source)
    assert any("cut" in note for note in first.notes)
    reached = SiteZone.objects.get().backfilled_from
    assert early < reached < TODAY
    pull(source, now=NOW + timedelta(minutes=30))
    assert SiteZone.objects.get().backfilled_from == early
    assert len(chosen(early, TODAY)) == 65 * 24


def test_changed_hours_are_posted_anew_and_only_those(grid, url, tmp_path):
    imported(write_csv(tmp_path / "p.csv", SAMPLES, samples(start=TODAY)), now=NOW)
    source = connect(url)
    grid.fill("DE", TODAY, [300.0])
    Job.objects.all().delete()
    assert pull(source).stored.reposted == {"hall-1"}
    payload = Job.objects.get(kind="carbon.close_hours").payload
    assert payload["repost"] is True
    assert payload["start"] == TODAY.isoformat()
    assert payload["end"] == (TODAY + HOUR).isoformat()


def test_a_young_hole_is_asked_for_again(grid, url):
    source = connect(url)
    grid.fill("DE", TODAY - timedelta(days=3), [100.0] * 84)
    hole = TODAY - timedelta(days=2)
    kept = grid.hours["DE"].pop(hole)
    pull(source, span=(TODAY - timedelta(days=3), NOW))
    grid.hours["DE"][hole] = kept
    assert pull(source).stored.new == 1


def test_throttling_rests_as_long_as_asked(grid, url):
    source = connect(url)
    grid.fill("DE", TODAY, [300.0])
    grid.faults = [(429, {"Retry-After": "1800"}, {"message": "slow down"})]
    pull(source)
    source.refresh_from_db()
    assert source.not_before == NOW + timedelta(minutes=30)
    assert feeds.ask_for_due_pulls(NOW + timedelta(minutes=29)) == 0
    assert feeds.ask_for_due_pulls(NOW + timedelta(minutes=31)) == 1


def test_a_source_that_keeps_failing_is_asked_less_and_less(grid, url):
    source = connect(url)
    IntensitySource.objects.update(last_ok_at=NOW - timedelta(hours=4))
    grid.faults = [(500, {}, {})] * 4
    pull(source)
    source.refresh_from_db()
    assert (source.state, source.not_before) == ("broken", NOW + timedelta(hours=2))
    assert "500" in source.last_error


def test_the_job_says_why_nothing_could_be_read(grid, url):
    source = connect(url)
    grid.token = "another"
    job = JobContext(
        job_id=source.pk,
        organisation_id=source.organisation_id,
        payload={"source_id": str(source.pk)},
    )
    with pytest.raises(PermanentJobError, match="401"):
        feeds.pull_intensity(job)


def test_a_wrong_zone_breaks_its_zone_and_no_other(grid, url):
    source = connect(url, "DE")
    grid.fill("FR", TODAY, [50.0])
    other = site("hall-2")
    SiteZone.objects.create(
        organisation_id=source.organisation_id, site_id=other.site_id, source=source, zone="FR"
    )
    pulled = pull(source)
    assert pulled.zones == ["FR"]
    assert list(pulled.errors) == ["DE"]
    assert chosen(place=other)[0].value == 50.0


def test_a_paused_source_is_not_asked_and_its_hours_stay(grid, url):
    source = connect(url)
    grid.fill("DE", TODAY, [300.0])
    pull(source)
    set_enabled(operator(), source, enabled=False)
    assert feeds.ask_for_due_pulls(NOW) == 0
    assert chosen()[0].value == 300.0


def test_credentials_are_sealed_rotated_and_nowhere_told(grid, url, settings, capsys):
    source = connect(url)
    assert "em-token" not in source.sealed
    assert "em-token" not in json.dumps(list(AuditEntry.objects.values()), default=str)
    old = settings.SECRETS_KEY
    settings.SECRETS_KEY = f"{Fernet.generate_key().decode()},{old}"
    call_command("rotate_secrets", "--json")
    assert json.loads(capsys.readouterr().out)["sealed_anew"] == 1
    settings.SECRETS_KEY = settings.SECRETS_KEY.split(",")[0]
    grid.fill("DE", TODAY, [300.0])
    assert pull(source).errors == {}
    call_command("rotate_secrets", "--json")
    assert json.loads(capsys.readouterr().out)["sealed_anew"] == 0


def test_a_stored_credential_never_goes_to_another_address(grid, url, settings):
    source = connect(url)
    settings.PRIVATE_HOSTS = ["127.0.0.1", "localhost"]
    wish = SourceWish(
        provider="electricitymaps", name="Maps", base_url=url.replace("127.0.0.1", "localhost")
    )
    with pytest.raises(SourceError, match="credential again"):
        save_source(operator(), wish, now=NOW, source=source)


def test_another_address_needs_the_operators_word(grid, url, settings):
    settings.PRIVATE_HOSTS = []
    with pytest.raises(SourceError):
        connect(url)
    settings.PRIVATE_HOSTS = ["127.0.0.1"]
    source = connect(url)
    settings.PRIVATE_HOSTS = []
    assert pull(source).errors


def test_the_command_pulls_days_and_prints_json(grid, url, capsys):
    connect(url)
    grid.fill("DE", TODAY - timedelta(days=3), [100.0] * 84)
    first = (TODAY - timedelta(days=3)).date().isoformat()
    call_command("pull_intensity", "--source", "Maps", "--from", first, "--to", first, "--json")
    (done,) = json.loads(capsys.readouterr().out)["sources"]
    assert (done["new"], done["errors"]) == (24, {})
    with pytest.raises(CommandError, match="No source named"):
        call_command("pull_intensity", "--source", "Nobody")
    with pytest.raises(CommandError, match="is no day"):
        call_command("pull_intensity", "--from", "yesterday")


@pytest.mark.django_db(transaction=True)
def test_two_pulls_at_once_store_each_hour_once(grid, url):
    source = connect(url)
    grid.fill("DE", TODAY, [300.0, 310.0])
    errors = []

    def one():
        try:
            errors.extend(feeds.pull_source(source, now=NOW).errors.values())
        finally:
            connection.close()

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert HourlyIntensity.objects.count() == 2


CSV = "zone,hour,g_per_kwh\nHALL,2025-10-20T00:00Z,123.5\nHALL,2025-10-20T02:00+01:00,130\n"


def test_a_file_of_hours_is_imported_and_again_changes_nothing(tmp_path, capsys):
    path = tmp_path / "hours.csv"
    path.write_text(CSV)
    connect("", "HALL", provider="csv", name="Meter")
    call_command("import_intensity", "--source", "Meter", str(path), "--json")
    assert json.loads(capsys.readouterr().out)["new"] == 2
    call_command("import_intensity", "--source", "Meter", str(path), "--json")
    assert json.loads(capsys.readouterr().out)["unchanged"] == 2
    assert {hour: one.value for hour, one in chosen().items()} == {0: 123.5, 1: 130.0}


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("HALL,2025-10-20T00:00Z,0.3501e4", "row 2, field g_per_kwh"),
        ("HALL,2025-10-20T00:00Z,-1", "field g_per_kwh"),
        ("HALL,2025-10-20T00:00Z,nan", "field g_per_kwh"),
        ("HALL,2025-10-20T00:30Z,300", "full hour"),
        ("HALL,2025-10-20T00:00,300", "time zone"),
        ("HALL,soon,300", "is no time"),
        (",2025-10-20T00:00Z,300", "field zone"),
        ("HALL,2025-10-20T00:00Z", "2 cells"),
        ("HALL,2025-10-20T00:00Z,300\nHALL,2025-10-20T00:00Z,301", "row 2 has another value"),
        ("HALL,2025-10-20T00:00Z,0.35", "kilograms"),
        ("HALL,2999-10-20T00:00Z,300", "lies ahead"),
    ],
)
def test_a_file_that_cannot_be_is_refused_by_row_and_field(tmp_path, row, words):
    path = tmp_path / "hours.csv"
    path.write_text(f"zone,hour,g_per_kwh\n{row}\n")
    with pytest.raises(CommandError) as caught:
        call_command("import_intensity", "--source", "Meter", str(path))
    assert "hours.csv" in str(caught.value)
    assert words in str(caught.value)
    assert HourlyIntensity.objects.count() == 0
