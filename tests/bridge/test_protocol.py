"""Messages: what is a request, how replies are written, and where a bridge is looked for."""

import json

import msgspec
import pytest

from hotlap.bridge import protocol
from hotlap.bridge.protocol import (
    BatchStep,
    BatchStepResult,
    Close,
    CloseResult,
    Final,
    Hello,
    HelloResult,
    Reset,
    ResetResult,
    Step,
    StepResult,
    decode_batch,
    decode_single,
    encode,
    error_frame,
)
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
def test_requests_are_read(text, request_):
    assert decode_single(text.encode()) == request_


def test_a_batch_steps_by_rows():
    text = b'{"type":"step","action":[[0,1,0],[1,0,1]]}'
    assert decode_batch(text) == BatchStep([(0.0, 1.0, 0.0), (1.0, 0.0, 1.0)])
    with pytest.raises(msgspec.ValidationError):
        decode_single(text)


@pytest.mark.parametrize("text", ['{"a":{}}', "null", ""])
def test_a_config_is_kept_as_it_was_written(text):
    request = decode_single(f'{{"type":"reset","config":{text or "{}"}}}'.encode())
    assert bytes(request.config).decode() == (text or "{}")
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
def test_what_is_no_request_is_refused_with_a_reason(text):
    with pytest.raises(protocol.DECODE_ERRORS) as caught:
        decode_single(text.encode("latin-1"))
    assert protocol.describe_decode_error(caught.value).startswith("request: ")


def test_deep_nesting_is_refused():
    text = '{"type":"reset","config":' + '{"a":' * 9000 + "1" + "}" * 9001
    with pytest.raises(protocol.DECODE_ERRORS) as caught:
        decode_single(text.encode())
    assert protocol.describe_decode_error(caught.value) == "request: nested too deeply."


def test_an_unknown_type_is_told_the_known_ones():
    with pytest.raises(msgspec.ValidationError) as caught:
        decode_single(b'{"type":"jump"}')
    assert "Invalid value 'jump'" in protocol.describe_decode_error(caught.value)
    assert "Known types: hello, reset, step, close." in protocol.describe_decode_error(caught.value)


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (
            HelloResult(1, "1-abc", ["track-01"]),
            '{"type":"hello_result","protocol":1,"physics":"1-abc","tracks":["track-01"]}',
        ),
        (
            HelloResult(1, "1-abc", [], binary=True),
            '{"type":"hello_result","protocol":1,"physics":"1-abc","tracks":[],"binary":true}',
        ),
        (ResetResult([0.5], {}), '{"type":"reset_result","observation":[0.5],"info":{}}'),
        (
            StepResult([0.0], 0.0, False, False, {}),
            '{"type":"step_result","observation":[0.0],"reward":0.0,"terminated":false,"truncated":false,"info":{}}',
        ),
        (
            BatchStepResult([[0.5]], [1.0], [True], [False], {}, {0: Final([0.25], {"lap": 1})}),
            '{"type":"step_result","observation":[[0.5]],"reward":[1.0],"terminated":[true],"truncated":[false],'
            '"info":{},"finals":{"0":{"observation":[0.25],"info":{"lap":1}}}}',
        ),
        (
            BatchStepResult([], [], [], [], {}, {}),
            '{"type":"step_result","observation":[],"reward":[],"terminated":[],"truncated":[],"info":{},"finals":{}}',
        ),
        (CloseResult(), '{"type":"close_result"}'),
    ],
)
def test_replies_are_written_to_the_letter(reply, text):
    assert encode(reply).decode() == text


def test_an_error_is_one_bounded_line_that_any_parser_reads():
    message = json.loads(error_frame("a\nb \ud800 " + "x" * 10_000).data)["message"]
    assert message.startswith("a b ? xxx")
    assert len(message) == protocol.MAX_ERROR_CHARS + 1


@pytest.mark.parametrize(("text", "port"), [(None, 9876), ("", 9876), ("1234", 1234), ("0", 0), ("65535", 65535)])
def test_the_port_is_the_variables_or_the_usual_one(monkeypatch, text, port):
    monkeypatch.delenv("BRIDGE_PORT", raising=False)
    if text is not None:
        monkeypatch.setenv("BRIDGE_PORT", text)
    assert protocol.default_port() == port


@pytest.mark.parametrize("text", ["http", "-1", "65536", "1.5", "٣", " 80 x"])
def test_a_variable_that_is_no_port_is_refused(monkeypatch, text):
    monkeypatch.setenv("BRIDGE_PORT", text)
    with pytest.raises(BridgeError, match="BRIDGE_PORT: a port is a whole number from 0 to 65535, got"):
        protocol.default_port()
