"""The settings of real workers in tests: the project's own and the tests' kinds, in a hurry."""

from costwatch.settings import *  # noqa: F403
from costwatch.settings import JOB_KINDS, OUTBOX_TOPICS
from tests.jobs.kinds import KINDS, TOPICS

JOB_KINDS = {**JOB_KINDS, **KINDS}
OUTBOX_TOPICS = {**OUTBOX_TOPICS, **TOPICS}
JOB_BACKOFF_S = 0.1
JOB_RING_AGAIN_S = 1
