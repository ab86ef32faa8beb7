"""Messages: which requests are valid, how replies are written, and the default port."""

import json
import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotlap.bridge import protocol
from hotlap.bridge.protocol import Close, GetState, Hello, Reset, SetState, Step, StepBatch, decode_batch, decode_single
from hotlap.errors import BridgeError


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ('{"type":"reset"}', Reset()),
        ('{"type":"reset","trackId":null,"seed":null,"numEnvs":null}', Reset()),
        ('{"seed":3,"type":"reset","trackId":"track-02"}', Reset(track_id="track-02", seed=3)),
        ('{"type":"reset","seed":123456789012345678901234567890}', Reset(seed=123456789012345678901234567890)),
        ('{"type":"reset","numEnvs":1024,"start":"random"}', Reset(num_envs=1024, start="random")),
        ('{"type":"reset","observation":"road"}', Reset(observation="road")),
        ('{"type":"reset","trackId":["a","b"],"seed":[1,2],"numEnvs":2}', Reset(["a", "b"], seed=[1, 2], num_envs=2)),
        ('{"type":"step","action":[0,1,0.5]}', Step((0.0, 1.0, 0.5))),
        ('{"type":"reset","actionRepeat":4}', Reset(action_repeat=4)),
        ('{"type":"get_state"}', GetState()),
        ('{"type":"set_state","state":{"lap":[1],"x_m":[0.5]},"first":3}', SetState({"lap": [1], "x_m": [0.5]}, 3)),
        ('{"type":"close"}', Close()),
        ('{"type":"hello"}', Hello()),
        ('{"type":"hello","binary":true}', Hello(binary=True)),
        (' {"type": "step", "extra": {"deep": [1, {}]}, "action": [0, 0, 0]} ', Step((0.0, 0.0, 0.0))),
    ],
)
def test_requests_are_decoded(text, request_):
    assert decode_single(text.encode()) == request_


def test_a_batch_step_has_one_action_per_row():
    text = b'{"type":"step","action":[[0,1,0],[1,0,1]]}'
    assert decode_batch(text) == StepBatch([(0.0, 1.0, 0.0), (1.0, 0.0, 1.0)])
    with pytest.raises(msgspec.ValidationError):
        decode_single(text)


def test_a_config_is_kept_as_raw_json():
    for text in (b'{"a":{}}', b"null", b"{}"):
        assert bytes(decode_single(b'{"type":"reset","config":%s}' % text).config) == text
    assert bytes(decode_single(b'{"type":"reset"}').config) == b""


@pytest.mark.parametrize(
    "text",
    [
        "", "null", "[]", "5", '"reset"', "{}", "{", '{"type":"reset"} x', '{"type":"reset"}{"type":"reset"}', "\xff",
        '{"type":5}', '{"type":"jump"}', '{"type":"RESET"}', '{"type":["reset"]}',
        '{"type":"reset","seed":1.5}', '{"type":"reset","seed":"1"}', '{"type":"reset","seed":true}',
        '{"type":"reset","numEnvs":1.5}', '{"type":"reset","numEnvs":true}',
        '{"type":"reset","trackId":5}', '{"type":"reset","trackId":[]}', f'{{"type":"reset","trackId":"{"x" * 65}"}}',
        '{"type":"reset","start":"middle"}', '{"type":"reset","observation":"camera"}',
        '{"type":"reset","observation":["road"]}', '{"type":"reset","actionRepeat":1.5}',
        '{"type":"set_state"}', '{"type":"set_state","state":[]}', '{"type":"set_state","state":{"lap":1}}',
        '{"type":"set_state","state":{"lap":["1"]}}', '{"type":"set_state","state":{"lap":[true]}}',
        '{"type":"set_state","state":{"x_m":[NaN]}}',
        '{"type":"set_state","state":{},"first":-1}', '{"type":"set_state","state":{},"first":1024}',
        '{"type":"step"}', '{"type":"step","action":null}', '{"type":"step","action":[0,0]}',
        '{"type":"step","action":[0,0,0,0]}', '{"type":"step","action":["0",0,0]}',
        '{"type":"step","action":[true,0,0]}',
        '{"type":"step","action":[NaN,0,0]}', '{"type":"step","action":[Infinity,0,0]}',
        '{"type":"step","action":[1e999,0,0]}', '{"type":"step","action":{"steer":0}}', '{"type":"hello","binary":1}',
    ],
)  # fmt: skip
def test_an_invalid_request_is_refused_with_a_reason(text):
    with pytest.raises(protocol.DECODE_ERRORS) as caught:
        decode_single(text.encode("latin-1"))
    assert protocol.describe_decode_error(caught.value).startswith("request: ")


def test_an_unknown_type_gets_the_known_ones():
    with pytest.raises(protocol.DECODE_ERRORS) as caught:
        decode_single(b'{"type":"jump"}')
    words = r"request: Invalid value 'jump'.* Known types: hello, reset, step, close, get_state, set_state\."
    assert re.fullmatch(words, protocol.describe_decode_error(caught.value))


def nested(depth: int, opening: str = '{"a":', closing: str = "}") -> bytes:
    """A reset whose message is `depth` levels deep."""
    return f'{{"type":"reset","config":{opening * (depth - 1)}1{closing * (depth - 1)}}}'.encode()


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ('[ "]" ,', "]"), ('{"\\"]}":', "}")])
def test_a_message_of_64_levels_is_parsed_and_a_deeper_one_is_refused_before_parsing(opening, closing):
    assert decode_single(nested(64, opening, closing)).config
    for depth in (65, 66, 100, 1000, 9000):
        data = nested(depth, opening, closing)
        for text in (data, data[: len(data) // 2], data + b"]" * 5000, b"]" * 5000 + data):
            if text.count(b"[") + text.count(b"{") > 64:
                with pytest.raises(BridgeError, match="request: nested too deeply; at most 64 levels"):
                    decode_single(text)
                with pytest.raises(BridgeError, match="nested too deeply"):
                    decode_batch(text)


def test_many_brackets_side_by_side_or_in_strings_are_not_depth():
    rows = [[0.5, 1.0, 0.0]] * 1024
    assert len(decode_batch(json.dumps({"type": "step", "action": rows}).encode()).action) == 1024
    for text in ("[" * 500, "{" * 500 + "]" * 20, '\\"' * 99 + "[" * 500, "\\" * 99 + "[{" * 99, "\n" + "[" * 99):
        assert decode_single(json.dumps({"type": "reset", "note": text, "seed": 3}).encode()).seed == 3


@given(
    st.recursive(
        st.text('[]{}\\\\"a', max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text('[]{}\\\\"', max_size=3), inner, max_size=3)
        ),
    )
)
def test_depth_is_that_of_the_parsed_value(value):
    def depth_of(one: object) -> int:
        if isinstance(one, dict):
            return 1 + max(map(depth_of, one.values()), default=0)
        return 1 + max(map(depth_of, one), default=0) if isinstance(one, list) else 0

    wrapped, limit = value, protocol.MAX_DEPTH
    for _ in range(limit - depth_of(value)):
        wrapped = [wrapped]
    protocol.check_depth(json.dumps(wrapped).encode())
    with pytest.raises(BridgeError, match="nested too deeply"):
        protocol.check_depth(json.dumps([wrapped]).encode())


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (protocol.HelloResult(1, "1-a", ["b"]), '"hello_result","protocol":1,"physics":"1-a","tracks":["b"]'),
        (
            protocol.HelloResult(1, "1-a", [], binary=True),
            '"hello_result","protocol":1,"physics":"1-a","tracks":[],"binary":true',
        ),
        (protocol.ResetResult([0.5], {}), '"reset_result","observation":[0.5],"info":{}'),
        (
            protocol.StepResult([0.0], 0.0, False, False, {}),
            '"step_result","observation":[0.0],"reward":0.0,"terminated":false,"truncated":false,"info":{}',
        ),
        (
            protocol.BatchStepResult([[0.5]], [1.0], [True], [False], {}, {0: protocol.Final([0.25], {"lap": 1})}),
            '"step_result","observation":[[0.5]],"reward":[1.0],"terminated":[true],"truncated":[false],'
            '"info":{},"finals":{"0":{"observation":[0.25],"info":{"lap":1}}}',
        ),
        (
            protocol.BatchStepResult([], [], [], [], {}, {}),
            '"step_result","observation":[],"reward":[],"terminated":[],"truncated":[],"info":{},"finals":{}',
        ),
        (protocol.CloseResult(), '"close_result"'),
    ],
)
def test_replies_are_encoded_exactly(reply, text):
    assert protocol.encode(reply).decode() == f'{{"type":{text}}}'


def test_an_error_is_one_line_of_limited_length_and_valid_utf8():
    message = json.loads(protocol.error_frame("a\nb \ud800 " + "x" * 10_000).data)["message"]
    assert message.startswith("a b ? xxx")
    assert len(message) == protocol.MAX_ERROR_CHARS + 1


def test_the_default_port_is_bridge_port_or_9876(monkeypatch):
    monkeypatch.delenv("BRIDGE_PORT", raising=False)
    assert protocol.default_port() == 9876
    for text, port in {"": 9876, "1234": 1234, "0": 0, "65535": 65535}.items():
        monkeypatch.setenv("BRIDGE_PORT", text)
        assert protocol.default_port() == port
    for text in ("http", "-1", "65536", "1.5", "٣", " 80 x"):
        monkeypatch.setenv("BRIDGE_PORT", text)
        with pytest.raises(BridgeError, match="BRIDGE_PORT: a port is a whole number from 0 to 65535, got"):
            protocol.default_port()
