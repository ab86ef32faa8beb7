"""How routes read requests and refuse them."""

import asyncio
import json
from http import HTTPStatus

import msgspec
import pytest
from starlette.requests import Request

from hotlap.errors import HotlapError, ReplayError, TrackError, UnknownTrackError
from hotlap.web import answers
from hotlap.web.answers import ApiError, answer_json, endpoint, query_text, read_json, refuse, status_of


class Lap(msgspec.Struct, forbid_unknown_fields=True):
    seconds: float


def request(body=b"", query=b"", **headers):
    sent = {"content-type": "application/json", "content-length": str(len(body)), **headers}
    scope = {
        "type": "http", "method": "POST", "path": "/x", "query_string": query,
        "headers": [(key.replace("_", "-").encode(), value.encode()) for key, value in sent.items()],
    }  # fmt: skip

    async def receive():
        return {"type": "http.request", "body": body}

    return Request(scope, receive)


def read(*given, **headers):
    return asyncio.run(read_json(request(*given, **headers), Lap, 40))


def test_a_body_of_json_is_read():
    assert read(b'{"seconds": 30.5}') == Lap(30.5)
    assert asyncio.run(read_json(request(b'{"seconds": 1}', **{"content-type": "Application/JSON; x=y"}), Lap)) == Lap(
        1
    )


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{}", {"content-type": "text/plain"}, 415),
        (b"{}", {"content-length": "²"}, 411),
        (b"{}", {"content-length": ""}, 411),
        (b"{}", {"transfer-encoding": "chunked"}, 411),
        (b"{}", {"content-length": "41"}, 413),
        (b"{}", {"content-length": "9" * 400}, 413),
        (b"{", {}, 400),
        (b'{"seconds": "x"}', {}, 400),
        (b'{"seconds": 1, "more": 2}', {}, 400),
        (b"\xff", {}, 400),
    ],
)
def test_any_other_body_is_refused(body, headers, status):
    with pytest.raises(ApiError) as caught:
        read(body, **headers)
    assert caught.value.status == status


def test_a_body_that_does_not_arrive_is_given_up(monkeypatch):
    monkeypatch.setattr(answers, "BODY_TIMEOUT_S", 0.01)
    waiting = request(b"{}")
    waiting._receive = asyncio.Event().wait
    with pytest.raises(ApiError, match="did not arrive"):
        asyncio.run(read_json(waiting, Lap))


def test_a_refusal_is_one_printable_line():
    response = refuse(HTTPStatus.CONFLICT, "a\nb\x1b[2J  c" + "x" * 1000, retry_after_s=0.2)
    text = json.loads(response.body)["error"]
    assert text.startswith("a b [2J cx")
    assert len(text) == answers.MAX_ERROR_CHARS
    assert (response.headers["connection"], response.headers["retry-after"]) == ("close", "1")
    assert answer_json({"a": 1}).headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("error", "status"),
    [(UnknownTrackError("x"), 404), (TrackError("x"), 422), (ReplayError("x"), 422), (HotlapError("x"), 500)],
)
def test_an_error_of_ours_has_its_status(error, status):
    async def route(_):
        raise error

    response = asyncio.run(endpoint(route)(request()))
    assert response.status_code == status_of(error) == status
    assert json.loads(response.body) == {"error": "x"}


def test_any_other_error_is_the_servers_and_its_text_stays_in_the_log(caplog):
    async def route(_):
        raise ZeroDivisionError("secret")

    response = asyncio.run(endpoint(route)(request()))
    assert response.status_code == 500
    assert b"secret" not in response.body
    assert "secret" in caplog.text


def test_a_missing_parameter_is_named():
    assert query_text(request(query=b"track=a%20b"), "track") == "a b"
    with pytest.raises(ApiError, match="the parameter track is missing"):
        query_text(request(), "track")
