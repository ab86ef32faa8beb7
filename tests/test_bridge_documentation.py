"""What docs/bridge.md shows works: its Python runs, its requests are answered, its tables say what the code does."""

import json
import re
from pathlib import Path

import pytest

from bridge.conversation import Phone
from hotlap.bridge.binary import BOOL_COLUMNS, FLOAT_COLUMNS, INT_COLUMNS
from hotlap.bridge.server import BridgeSettings

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
    with Phone(bridge_server.url) as phone:
        answered = [phone(**request)["type"] for request in requests]
    assert answered == [f"{request['type']}_result" for request in requests]


@pytest.mark.parametrize("kind", ["reset", "step", "close", "hello"])
def test_the_table_of_messages_is_right(bridge_server, kind):
    [(asked, answered)] = re.findall(rf'^\| `(\{{"type":"{kind}".*)` \| `(\{{.*\}})` \|$', TEXT, re.MULTILINE)
    assert f'"type":"{kind}_result"' in answered
    with Phone(bridge_server.url) as phone:
        phone(type="reset")
        request = {"type": kind, **({"action": [0, 0, 0]} if "action" in asked else {})}
        assert list(phone(**request)) == re.findall(r'[{,]"(\w+)"', answered)


def test_the_binary_columns_are_in_order():
    for columns in (FLOAT_COLUMNS, INT_COLUMNS, BOOL_COLUMNS):
        assert ", ".join(columns) in TEXT


def test_the_times_are_the_servers():
    settings = BridgeSettings()
    assert f"pinged every {settings.ping_after_s:g} s" in TEXT
    assert settings.give_up_after_s == 3600.0
