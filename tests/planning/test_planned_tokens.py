"""How many tokens a line plans: what its runs say, the estimate where they say it twice."""

from uuid import uuid4

import pytest

from planning.work_done import MAIN_RUN, planned_tokens
from runs.records import RunRecord


def make_run(tokens_planned: int | None) -> RunRecord:
    return RunRecord(
        run_id=uuid4(),
        project_id=uuid4(),
        slug="main",
        name="main",
        accelerator_key="",
        accelerator_count=8,
        precision="bf16",
        start=None,
        end=None,
        tokens_planned=tokens_planned,
    )


@pytest.mark.parametrize(
    ("stated", "estimated", "planned"),
    [
        ([None], 60, 60),
        ([80], 60, 80),  # more than was estimated: more volume
        ([60, 60], 60, 60),  # goes on from another, and says the whole again
        ([30, 30], 60, 60),
        ([20, 20], 60, 40),
        ([30, 30], None, 60),
        ([None, None], None, None),
    ],
)
def test_main_runs_plan_what_they_say_together_but_not_twice(
    stated: list[int | None], estimated: int | None, planned: int | None
) -> None:
    runs = [make_run(one) for one in stated]
    assert planned_tokens(MAIN_RUN, runs, estimated) == planned
