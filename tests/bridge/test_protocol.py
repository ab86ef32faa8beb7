"""Messages: which requests are valid, how replies are written, and the default port."""

import json
import re

import msgspec
import pytest

from hotlap.bridge import protocol
from hotlap.bridge.protocol import Close, Hello, Reset, Step, StepBatch, decode_batch, decode_single
from hotlap.errors import BridgeError


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ('{"type":"reset"}', Reset()),
        ('{"type":"reset","trackId":null,"seed":null,"numEnvs":null}', Reset()),
        ('{"seed":3,"type":"reset","trackId":"track-02"}', Reset(track_id="track-02", seed=3)),
        ('{"type":"reset","seed":123456789012345678901234567890}', Reset(seed=123456789012345678901234567890)),
        ('{"type":"reset","numEnvs":1024,"start":"random"}', Reset(num_envs=1024, start="random")),
        ('{"type":"reset","trackId":["a","b"],"seed":[1,2],"numEnvs":2}', Reset(["a", "b"], seed=[1, 2], num_envs=2)),
        ('{"type":"step","action":[0,1,0.5]}', Step((0.0, 1.0, 0.5))),
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
        '{"type":"reset","numEnvs":0}', '{"type":"reset","numEnvs":1025}', '{"type":"reset","numEnvs":1.5}',
        '{"type":"reset","trackId":5}', '{"type":"reset","trackId":[]}', f'{{"type":"reset","trackId":"{"x" * 65}"}}',
        '{"type":"reset","start":"middle"}',
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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"type":"reset","config":' + '{"a":' * 9000 + "1" + "}" * 9001, r"request: nested too deeply\."),
        ('{"type":"jump"}', r"request: Invalid value 'jump'.* Known types: hello, reset, step, close\."),
    ],
)
def test_deep_nesting_and_an_unknown_type_have_their_own_reasons(text, words):
    with pytest.raises(protocol.DECODE_ERRORS) as caught:
        decode_single(text.encode())
    assert re.fullmatch(words, protocol.describe_decode_error(caught.value))


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
