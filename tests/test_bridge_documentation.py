"""docs/bridge.md is correct: its Python runs, its requests are answered, and its tables match the code."""

import json
import re
from pathlib import Path

import pytest

from bridge.json_clients import JsonClient
from hotlap.bridge.binary import (
    BOOL_COLUMNS,
    FLOAT_COLUMNS,
    INT_COLUMNS,
    RACE_FLOATS,
    RACE_INTS,
    RACE_PROGRESS,
)
from hotlap.bridge.protocol import MAX_ENVS, MAX_STEP_TICKS
from hotlap.bridge.remote_fleet import MAX_REMOTE_CARS
from hotlap.bridge.server import BridgeSettings
from hotlap.envs.fleet import MAX_REPEAT
from hotlap.envs.race_defaults import DEFAULT_LAPS
from hotlap.envs.race_fleet import LAPS
from hotlap.sim.race_step import NUM_RACE_OBSERVATIONS

TEXT = (Path(__file__).resolve().parent.parent / "docs" / "bridge.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def test_the_python_runs_from_top_to_bottom(bridge_server):
    examples = blocks("python")
    assert len(examples) == 3
    names: dict[str, object] = {"bridge_url": bridge_server.url}
    for number, example in enumerate(examples, start=1):
        exec(compile(example, f"bridge.md, example {number}", "exec"), names)


def test_the_requests_are_answered(bridge_server):
    requests = [json.loads(line) for block in blocks("json") for line in block.splitlines()]
    with JsonClient(bridge_server.url) as client:
        answered = [client(**request)["type"] for request in requests]
    assert answered == [f"{request['type']}_result" for request in requests]


@pytest.mark.parametrize("kind", ["reset", "step", "close", "hello", "get_state", "set_state"])
def test_the_table_of_messages_matches_the_bridge(bridge_server, kind):
    [(asked, answered)] = re.findall(rf'^\| `(\{{"type":"{kind}".*)` \| `(\{{.*\}})` \|$', TEXT, re.MULTILINE)
    assert f'"type":"{kind}_result"' in answered
    with JsonClient(bridge_server.url) as client:
        client(type="reset")
        request = {"type": kind, **({"action": [0, 0, 0]} if "action" in asked else {})}
        if kind == "set_state":
            request["state"] = client(type="get_state")["state"]
        assert list(client(**request)) == re.findall(r'[{,]"(\w+)"', answered)


def test_the_binary_columns_and_the_limits_are_those_of_the_bridge():
    for columns in (FLOAT_COLUMNS, INT_COLUMNS, BOOL_COLUMNS, RACE_FLOATS, RACE_INTS, (RACE_PROGRESS,)):
        assert ", ".join(columns) in TEXT
    assert f"after N and M |\n| float32 | N each, and M each: {', '.join(RACE_FLOATS)}" in TEXT
    assert f"`laps` | {LAPS.low} to {LAPS.high:,}; {DEFAULT_LAPS} if absent" in TEXT
    assert f"L is {NUM_RACE_OBSERVATIONS}" in TEXT

    assert f"(1 to {MAX_REPEAT})" in TEXT
    assert f"at most {MAX_STEP_TICKS:,}" in TEXT
    assert f"More than {MAX_ENVS:,} cars, up to {MAX_REMOTE_CARS:,}" in TEXT

    settings = BridgeSettings()
    assert f"pinged every {settings.ping_after_s:g} s" in TEXT
    assert settings.close_after_s == 3600.0
