"""What a sweep and its workers tell each other survives JSON."""

import msgspec
import pytest

from hotlap.sweeps.run_messages import RunReport, RunTask

MESSAGES = [
    RunTask(3, 1, "a/b", {"ppo": {"gamma": 0.99}}, (("final_reward_mean", "maximize"),), 100, ("json",)),
    RunReport("finished", (1.5, None), 2.0, True, 640, 0.25),
    RunReport("failed", error="seed 1: …"),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_comes_back_as_it_was(message):
    assert msgspec.json.decode(msgspec.json.encode(message), type=type(message)) == message


def test_an_unknown_end_is_refused():
    with pytest.raises(msgspec.ValidationError, match="kind"):
        msgspec.json.decode(b'{"kind": "vanished"}', type=RunReport)
