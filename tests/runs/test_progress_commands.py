"""Progress comes in from files of JSON lines and is told on the command line."""

import json
import math

import pytest
from django.core.management import CommandError, call_command

from runs.configuration import apply, dump
from runs.models import StepReading
from runs.progress_selectors import latest_of, progress_by_day
from runs.selectors import run_by_slug
from tests.builders import organisation
from tests.carbon.builders import operator
from tests.runs.builders import T0, make_run, record, steps, the_project

pytestmark = pytest.mark.django_db
LINES = """\
{"at": "2026-09-14T00:01:00Z", "step": 1, "tokens_total": 1000, "step_time_s": 60, "loss": 9.5}
{"timestamp": "2026-09-14T00:02:00Z", "step": 2, "tokens": 2000, "lr": 1e-4, "loss": NaN}

{"message": "saving", "level": "INFO"}
{"at": "2026-09-14T00:02:30Z", "kind": "checkpoint", "step": 2}
not json
{"at": "2026-09-14T00:03:00Z", "step": -3}
"""


def run_command(capsys, *words):
    call_command(*words, "--json")
    return json.loads(capsys.readouterr().out)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "train.jsonl"
    path.write_text(LINES)
    return path


def test_a_file_of_json_lines_comes_in_and_twice_changes_nothing(file, capsys):
    moe = the_project()
    words = ("import_progress", "--project", "moe", "--run", "main", str(file))
    first, again = run_command(capsys, *words), run_command(capsys, *words)
    assert (first["points_new"], first["events_new"], first["lines_passed"]) == (2, 1, 1)
    assert [(one["index"], one["field"]) for one in first["refused"]] == [(6, ""), (7, "step")]
    assert (again["points_new"], again["points_known"]) == (0, 2)
    run = run_by_slug(moe.pk, "main")
    last = StepReading.objects.get(step=2)
    assert (last.tokens_total, last.learning_rate) == (2000, 1e-4)
    assert math.isnan(last.loss)
    days = progress_by_day(
        moe.pk, start_on=T0.date(), end_on=T0.date().replace(day=15), run_id=run.run_id
    )
    assert [day.tokens for day in days] == [2000]


def test_an_unknown_project_is_named(file):
    the_project()
    with pytest.raises(CommandError, match="no such project"):
        call_command("import_progress", "--project", "none", "--run", "main", str(file))


def test_a_missing_file_is_named(tmp_path):
    the_project()
    with pytest.raises(CommandError, match="gone"):
        call_command(
            "import_progress", "--project", "moe", "--run", "x", str(tmp_path / "gone.jsonl")
        )


def test_runs_are_told_with_where_they_stand(capsys):
    run = make_run()
    record(run, steps(0, 720, at=T0))
    (told,) = run_command(capsys, "runs", "--project", "moe")["runs"]
    assert (told["slug"], told["step"], told["tokens_total"]) == ("main", 720, 720_000_000)
    assert told["mfu_basis"]["flop_per_token"] == 6e9
    by_day = run_command(capsys, "runs", "--project", "moe", "--run", "main")
    assert [day["last_step"] for day in by_day["days"]] == [720]
    call_command("runs", "--project", "moe")
    assert "main:" in capsys.readouterr().out


def test_configuration_says_what_a_run_is_measured_against_and_keeps_the_rest():
    make_run(tokens_planned=10**13, git_commit="abc123")
    apply(operator(), {"runs": [{"project": "moe", "slug": "main", "tokens_per_step": 4096}]})
    found = latest_of(the_project().pk)[0].run
    assert (found.tokens_per_step, found.tokens_planned, found.git_commit) == (
        4096,
        10**13,
        "abc123",
    )
    (written,) = dump(organisation().pk)["runs"]
    assert written["tokens_planned"] == 10**13
    apply(operator(), {"runs": [written]})
    assert dump(organisation().pk)["runs"] == [written]
