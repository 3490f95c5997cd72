"""What an agent's batch cannot be is refused with the field's name and a sentence that says why."""

import json

import pytest

from carbon.adapters.agent_batches import read_batch
from carbon.adapters.agent_columns import AgentBatchError
from projects.records import Scope
from tests.builders import token, with_token
from tests.carbon.batch_builders import BOOT

NEWEST = 2_000_000_000_000_000


def batch(**changed):
    whole = {
        "format": "costwatch-agent/1",
        "agent": {"name": "node-1"},
        "boot": BOOT,
        "sequence": 1,
        "devices": [{"uuid": "GPU-1"}],
        "readings": {"device": [0], "at_ms": [1_760_000_000_000], "power_w": [300.0]},
        **changed,
    }
    return {name: value for name, value in whole.items() if value is not None}


@pytest.mark.parametrize(
    ("changed", "field", "said"),
    [
        ({"boot": None}, "boot", "is missing"),
        ({"sequnce": 2}, "sequnce", "is no field of costwatch-agent/1"),
        ({"devices": [{"model": "H100"}]}, "devices[0].uuid", "is missing"),
        ({"agent": {"name": "n", "os": "x"}}, "agent.os", "is no field of costwatch-agent/1"),
        ({"sequence": "1"}, "sequence", "Expected `int`, got `str`"),
        ({"format": "costwatch-agent/2"}, "format", "Invalid enum value 'costwatch-agent/2'"),
    ],
)
def test_the_field_is_named_and_the_message_says_what_is_wrong(changed, field, said):
    with pytest.raises(AgentBatchError) as refused:
        read_batch(json.dumps(batch(**changed)).encode(), newest=NEWEST)
    assert (refused.value.field, refused.value.problem) == (field, said)


def test_a_body_that_is_no_batch_at_all_names_the_body():
    with pytest.raises(AgentBatchError) as refused:
        read_batch(b"[]", newest=NEWEST)
    assert (refused.value.field, refused.value.problem) == (
        "body",
        "Expected `object`, got `array`",
    )
    with pytest.raises(AgentBatchError) as refused:
        read_batch(b"{", newest=NEWEST)
    assert (refused.value.field, refused.value.code) == ("body", "not_json")


@pytest.mark.django_db
def test_metrics_are_refused_in_one_sentence():
    answer = with_token(token(Scope.INGEST_POWER)).get("/metrics")
    assert answer.status_code == 403
    assert answer["Content-Type"].startswith("text/plain")
    words = answer.content.decode()
    assert not set(words) & set("{}[]'\"")
    assert words.endswith(".\n")
    assert words.count("\n") == 1
