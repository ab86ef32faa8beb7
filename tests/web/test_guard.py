"""The guard in front of every route: the rate of all requests, and the headers of every answer."""

import asyncio

from hotlap.bridge.access import AccessRules, RateLimit
from hotlap.web.guard import Guard

PORT = 8000


def ask(guard: Guard, query: str = "", **headers: str) -> dict:
    """The head of the answer to one request."""
    sent = []

    async def send(message):
        sent.append(message)

    head = {"host": f"127.0.0.1:{PORT}", **headers}
    raw = [(name.encode(), value.encode("latin-1")) for name, value in head.items()]
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": query.encode(), "headers": raw}
    asyncio.run(guard(scope, None, send))
    return {"status": sent[0]["status"], **{name.decode(): value.decode() for name, value in sent[0]["headers"]}}


def make_guard(token: str | None = None, burst: int = 100) -> tuple[Guard, list]:
    passed = []

    async def app(scope, receive, send):
        passed.append(scope)
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    limit = RateLimit(1.0, burst, clock=lambda: 0.0)
    return Guard(app, AccessRules("127.0.0.1", PORT, token), limit), passed


def test_requests_beyond_the_rate_do_not_reach_the_application():
    guard, passed = make_guard(burst=3)
    assert [ask(guard)["status"] for _ in range(5)] == [204, 204, 204, 429, 429]
    assert len(passed) == 3
    assert ask(guard)["retry-after"] == "2"


def test_a_refused_request_does_not_use_up_the_rate_of_others():
    guard, passed = make_guard(burst=2)
    assert {ask(guard, origin="http://evil.example")["status"] for _ in range(9)} == {403}
    assert ask(guard)["status"] == 204
    assert len(passed) == 1


def test_every_answer_has_the_security_headers_also_a_refusal():
    guard, _ = make_guard()
    for answer in (ask(guard), ask(guard, host="evil.example"), ask(guard, origin="null")):
        assert "frame-ancestors 'none'" in answer["content-security-policy"]
        assert answer["referrer-policy"] == "no-referrer"


def test_the_cookie_is_set_only_for_the_right_token_in_the_address():
    guard, passed = make_guard(token="sesame")
    assert "set-cookie" in ask(guard, "token=sesame")
    assert "set-cookie" not in ask(guard, "token=wrong")
    assert "set-cookie" not in ask(guard, authorization="Bearer sesame")
    assert len(passed) == 2
