"""Whose work a GPU does: the kernel says it first, then the process, then its number."""

import pytest

from costwatch_agent.jobs import JobFinder, JobNotes, Owner, owner_of

POD = "0a1b2c3d-1111-2222-3333-444455556666"
UNDERSCORED = POD.replace("-", "_")


@pytest.mark.parametrize(
    ("groups", "environment", "expected"),
    [
        (
            "0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0",
            {"COSTWATCH_RUN": "moe-10b/main", "SLURM_JOB_ID": "9999"},
            Owner(kind="slurm", job="4711", run="moe-10b/main"),
        ),
        ("4:devices:/slurm/uid_1000/job_12/step_batch\n1:name=x:/\n", {}, ("slurm", "12")),
        (
            f"0::/kubepods.slice/kubepods-burstable-pod{UNDERSCORED}.slice/cri-containerd-1.scope",
            {},
            ("kubernetes", POD),
        ),
        (
            f"0::/../../kubepods/burstable/pod{POD}/abc",
            {
                "POD_NAMESPACE": "ml",
                "POD_NAME": "train-0",
                "COSTWATCH_PROJECT": "moe-10b",
                "COSTWATCH_RUN": "main",
            },
            Owner(kind="kubernetes", job="ml/train-0", run="moe-10b/main"),
        ),
        ("0::/user.slice", {"SLURM_JOB_ID": "13"}, ("slurm", "13")),
        ("0::/user.slice", {"COSTWATCH_RUN": "p/r"}, ("environment", "p/r")),
        ("0::/user.slice", {"COSTWATCH_RUN": "not a run"}, ("process", "77")),
        ("0::/user.slice", {"COSTWATCH_RUN": "a/b/c"}, ("process", "77")),
        ("", {}, ("process", "77")),
    ],
)
def test_a_job_is_named_by(groups, environment, expected):
    found = owner_of(77, environment=environment, groups=groups)
    assert (found if isinstance(expected, Owner) else (found.kind, found.job)) == expected


def test_a_process_is_looked_at_once_and_anew_when_its_number_is_used_again(node):
    node.process(50, SLURM_JOB_ID="1")
    finder = JobFinder(node.proc, None)
    assert finder.owners([[50]], ["GPU-1"], [0]) == [{Owner(kind="slurm", job="1")}]
    node.write("proc/50/environ", "SLURM_JOB_ID=2\0")
    assert finder.owners([[50]], ["GPU-1"], [0]) == [{Owner(kind="slurm", job="1")}]
    node.write("proc/50/stat", "50 (py) S " + "0 " * 18 + "99999 0\n")
    assert finder.owners([[50]], ["GPU-1"], [0]) == [{Owner(kind="slurm", job="2")}]
    (node.proc / "50/stat").unlink()
    assert finder.owners([[50]], ["GPU-1"], [0]) == [set()]


def test_an_environment_that_may_not_be_read_leaves_the_control_group(node):
    node.process(50, groups="0::/system.slice/slurmstepd.scope/job_3/step_0", COSTWATCH_RUN="p/r")
    (node.proc / "50/environ").unlink()
    finder = JobFinder(node.proc, None)
    assert finder.owners([[50]], ["GPU-1"], [0]) == [{Owner(kind="slurm", job="3")}]


def test_an_allocation_that_the_prolog_noted_counts_though_nothing_runs(node):
    node.write("notes/4711", "GPUS=0,GPU-b\nRUN=moe-10b/main\n")
    node.write("notes/4712", "GPUS=2\n")
    node.write("notes/README", "GPUS=0\n")
    node.process(50)
    node.process(51, SLURM_JOB_ID="4712", COSTWATCH_RUN="q/r")
    finder = JobFinder(node.proc, node.root / "notes")
    found = finder.owners([[50], [], [51], []], ["GPU-a", "GPU-b", "GPU-c", "GPU-d"], [0, 1, 2, 3])
    noted = Owner(kind="slurm", job="4711", run="moe-10b/main")
    assert found == [{noted}, {noted}, {Owner(kind="slurm", job="4712", run="q/r")}, set()]


def test_a_job_is_told_at_its_first_and_last_sight_and_once_a_minute_between():
    notes = JobNotes()
    owner = Owner(kind="slurm", job="1")
    told = []
    for at_s in range(0, 130, 10):
        told += [note.at_ms for note in notes.note([{owner}], ["GPU-1"], at_s * 1000)]
    told += [note.at_ms for note in notes.note([set()], ["GPU-1"], 130_000)]
    assert told == [0, 60_000, 120_000]
    told += [note.at_ms for note in notes.note([{owner}], ["GPU-1"], 140_000)]
    notes.note([{owner}], ["GPU-1"], 150_000)
    told += [note.at_ms for note in notes.note([set()], ["GPU-1"], 160_000)]
    assert told == [0, 60_000, 120_000, 140_000, 150_000]
