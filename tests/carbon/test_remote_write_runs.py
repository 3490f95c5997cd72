"""What a Prometheus says of training runs becomes their progress, also when it comes apart."""

from datetime import UTC, datetime

import pytest
from django.utils import timezone

from carbon.models import IntakeBody
from projects.records import Scope, TokenReach
from runs.models import ProgressSource, Run, StepReading
from runs.progress_selectors import latest_of
from tests import builders
from tests.builders import token, with_token
from tests.carbon.builders import site
from tests.carbon.remote_write_bodies import Ts, body, power
from tests.carbon.test_remote_write_door import post

pytestmark = pytest.mark.django_db
BOTH = (Scope.INGEST_POWER, Scope.INGEST_RUNS)


@pytest.fixture
def moe():
    return builders.project("moe")


@pytest.fixture
def prometheus(moe):
    return with_token(token(*BOTH, reach=TokenReach(site_id=site().site_id)))


@pytest.fixture
def at_ms():
    return int(timezone.now().timestamp() * 1000) - 60_000


def of_run(name, *samples, **labels):
    named = {"__name__": name, "project": "moe", "run": "main"} | labels
    return Ts(labels=sorted((key, text) for key, text in named.items() if text), samples=samples)


def test_series_of_one_instant_are_a_point_of_the_run(prometheus, moe, at_ms):
    answer = post(
        prometheus,
        body(
            of_run("costwatch_run_step", (at_ms, 10.0)),
            of_run("costwatch_run_tokens_total", (at_ms, 4e7)),
            of_run("costwatch_run_step_seconds", (at_ms, 2.5)),
            of_run("costwatch_run_loss", (at_ms, 2.1)),
            *power([1.0], at_ms=at_ms),
        ),
    )
    assert (answer.status_code, answer.content) == (204, b"")
    assert answer["X-Prometheus-Remote-Write-Samples-Written"] == "5"
    (now,) = latest_of(moe.pk)
    assert (now.run.slug, now.step, now.tokens_total, now.loss) == ("main", 10, 40_000_000, 2.1)
    assert now.at == datetime.fromtimestamp(at_ms / 1000, tz=UTC)
    assert IntakeBody.objects.get().rows == 1


def test_measures_that_come_in_other_requests_wait_for_their_step_and_fill_it(prometheus, at_ms):
    post(prometheus, body(of_run("costwatch_run_loss", (at_ms, 2.1))))
    assert not StepReading.objects.exists()
    post(prometheus, body(of_run("costwatch_run_step", (at_ms, 10.0))))
    post(prometheus, body(of_run("costwatch_run_tokens_total", (at_ms, 4e7))))
    reading = StepReading.objects.get()
    assert (reading.step, reading.loss, reading.tokens_total) == (10, 2.1, 40_000_000)
    assert ProgressSource.objects.get().waiting == {}


def test_the_same_again_changes_nothing(prometheus, at_ms):
    sent = body(
        of_run("costwatch_run_step", (at_ms, 10.0)), of_run("costwatch_run_loss", (at_ms, 2.1))
    )
    assert [post(prometheus, sent).status_code for _time in range(2)] == [204, 204]
    post(prometheus, body(of_run("costwatch_run_loss", (at_ms, 9.9))))
    assert StepReading.objects.get().loss == 2.1


def test_replicas_are_two_sources(prometheus, at_ms):
    for replica in ("a", "b"):
        labels = {"prometheus_replica": replica}
        post(prometheus, body(of_run("costwatch_run_step", (at_ms, 10.0), **labels)))
    assert ProgressSource.objects.count() == 2


def test_a_token_without_the_scope_brings_no_progress(moe, at_ms):
    client = with_token(token(Scope.INGEST_POWER, reach=TokenReach(site_id=site().site_id)))
    answer = post(client, body(of_run("costwatch_run_step", (at_ms, 10.0))))
    assert (answer.status_code, Run.objects.count()) == (204, 0)
    assert answer["X-Prometheus-Remote-Write-Samples-Written"] == "0"


@pytest.mark.parametrize(
    ("series", "reason"),
    [
        (("costwatch_run_step", {"project": "none"}), "no_such_project"),
        (("costwatch_run_step", {"run": "a b"}), "no_such_run"),
        (("costwatch_run_step", {"project": ""}), "no_run"),
        (("costwatch_run_world_size", {}), "out_of_range"),
    ],
)
def test_what_is_lost_is_said_and_the_rest_is_kept(prometheus, at_ms, series, reason):
    name, labels = series
    answer = post(
        prometheus,
        body(of_run(name, (at_ms, -1.0), **labels), of_run("costwatch_run_loss", (at_ms, 2.0))),
    )
    assert (answer.status_code, answer.json()["reasons"]) == (400, {reason: 1})
    assert answer["X-Prometheus-Remote-Write-Samples-Written"] == "1"


def test_a_loss_that_is_no_number_is_told(prometheus, moe, at_ms):
    sent = body(
        of_run("costwatch_run_step", (at_ms, 10.0)),
        of_run("costwatch_run_loss", (at_ms, float("nan"))),
    )
    assert post(prometheus, sent).status_code == 204
    (now,) = latest_of(moe.pk)
    assert now.loss != now.loss


def test_a_shared_name_of_somebody_else_is_ignored(prometheus, at_ms):
    sent = body(Ts(labels=[("__name__", "training_loss"), ("job", "x")], samples=[(at_ms, 1.0)]))
    assert post(prometheus, sent).status_code == 204
    assert not Run.objects.exists()
