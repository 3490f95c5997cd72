"""Pages of runs: where they stand, what is known and unknown, who may change them."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from audit.models import AuditEntry
from projects.records import Role
from runs.models import Run
from runs.progress_charts import charts_of
from runs.progress_moments import moments_of
from runs.progress_records import EventKind
from runs.progress_selectors import progress_by_day
from tests import builders
from tests.runs.builders import DAY, HOUR, T0, assign, event, make_run, record, steps, the_project

pytestmark = pytest.mark.django_db
LIST, DETAIL = "/projects/moe/runs/", "/projects/moe/runs/main/"


@pytest.fixture
def analyst():
    return _person("ann", Role.ANALYST)


def _person(name, role):
    person = builders.person(name)
    person.memberships.create(project=the_project(), role=role)
    return builders.signed_in(person)


def text(response):
    assert response.status_code == 200
    return response.content.decode()


def test_a_project_without_runs_says_how_to_bring_progress_in(analyst):
    page = text(analyst.get(LIST))
    assert "No run yet" in page
    assert "costwatch-agent tail" in page
    assert "moe/main" in page


def test_a_run_without_metrics_is_a_valid_state(analyst):
    make_run()
    page = text(analyst.get(DETAIL))
    assert "No metrics yet" in page
    assert "costwatch-agent tail train.log --run moe/main" in page
    assert "no metrics yet" in text(analyst.get(LIST))


def test_a_run_s_page_names_the_denominator_and_says_where_time_went(analyst):
    run = make_run()
    assign(run, T0, None)
    told = [event(EventKind.ROLLBACK, T0 + 2 * HOUR, to_step=540, detail="<b>spike</b>")]
    record(run, [*steps(0, 720, at=T0), *steps(600, 900, at=T0 + 3 * HOUR)], told)
    page = text(analyst.get(DETAIL))
    assert "BF16 dense, 989.4 TFLOP/s" in page
    assert "6N, N = 1B active parameters" in page
    assert "Rework after rollbacks" in page
    assert "&lt;b&gt;spike" in page
    assert "<b>spike" not in page


def test_what_is_unknown_is_never_shown_as_zero(analyst):
    run = make_run(parameters_active=None)
    record(run, steps(0, 60, at=T0, tokens_total=None, loss=None))
    page = text(analyst.get(DETAIL))
    assert "set parameters and accelerator to know it" in page
    assert "No device is assigned to this run" in page


def test_the_list_asks_as_often_for_many_runs_as_for_one(analyst):
    def asked():
        with CaptureQueriesContext(connection) as found:
            text(analyst.get(LIST))
        return len(found)

    record(make_run("a"), steps(0, 60, at=T0))
    text(analyst.get(LIST))
    once = asked()
    for slug in ("b", "c", "d"):
        record(make_run(slug), steps(0, 60, at=T0))
    assert asked() == once


def test_a_run_is_made_and_changed_by_analysts_only(analyst):
    form = {
        "slug": "main",
        "parameters_active": "10B",
        "tokens_planned": "10T",
        "precision": "bf16",
    }
    made = analyst.post("/projects/moe/new-run/", form)
    assert made["Location"] == DETAIL
    run = Run.objects.get()
    assert (run.parameters_active, run.tokens_planned, run.name) == (1e10, 10**13, "main")
    changed = analyst.post(f"{DETAIL}edit/", {**form, "tokens_planned": "12T", "name": "Main"})
    assert changed.status_code == 302
    run.refresh_from_db()
    assert (run.tokens_planned, run.slug) == (12 * 10**12, "main")
    assert set(AuditEntry.objects.values_list("action", flat=True)) >= {
        "run.created",
        "run.changed",
    }
    viewer = _person("vic", Role.VIEWER)
    assert viewer.get(DETAIL).status_code == 200
    for address in ("/projects/moe/new-run/", f"{DETAIL}edit/"):
        assert viewer.post(address, form).status_code == 403


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("slug", "a b"),
        ("parameters_active", "many"),
        ("tokens_planned", "1e30"),
        ("accelerator_count", "-1"),
        ("end", "2020-01-01"),
        ("external_url", "javascript:alert(1)"),
    ],
)
def test_a_value_that_cannot_be_is_refused_at_its_field(analyst, field, value):
    form = {"slug": "main", "start": "2026-01-01", field: value}
    page = analyst.post("/projects/moe/new-run/", form)
    assert field in page.context["form"].errors
    assert not Run.objects.exists()


def test_a_second_run_of_one_name_is_refused(analyst):
    make_run()
    page = analyst.post("/projects/moe/new-run/", {"slug": "main"})
    assert "slug" in page.context["form"].errors


def test_a_start_with_its_hour_stays_when_the_day_does(analyst):
    make_run(start=T0 + 5 * HOUR)
    analyst.post(f"{DETAIL}edit/", {"start": f"{T0:%Y-%m-%d}", "name": "x"})
    assert Run.objects.get().start == T0 + 5 * HOUR


def test_a_short_run_is_drawn_by_hour_and_a_long_one_by_day():
    run = make_run()
    record(run, steps(0, 720, at=T0))
    first = T0.date()

    def drawn():
        days = progress_by_day(
            run.project_id, start_on=first, end_on=first + timedelta(days=30), run_id=run.run_id
        )
        return moments_of(run, days)

    assert [moment.at.hour for moment in drawn()] == [0, 1, 2]
    record(run, steps(720, 780, at=T0 + 9 * DAY))
    assert [f"{moment.at}" for moment in drawn()] == ["2026-09-14", "2026-09-23"]


def test_the_unit_of_a_chart_is_escaped_once():
    run = make_run()
    assign(run, T0, None)
    record(run, steps(0, 8640 * 8, at=T0, every=2160))
    first = T0.date()
    days = progress_by_day(run.project_id, start_on=first, end_on=first + timedelta(days=9))
    charts = {one.key: one.figure for one in charts_of(run, moments_of(run, days), [], "")}
    assert set(charts) == {"tokens", "mfu", "step-time", "loss"}
    assert charts["mfu"]["layout"]["annotations"][0]["text"] == "&#37;"
    assert charts["mfu"]["data"][0]["customdata"][0].endswith(" &#37;")
