"""The page's server as a process: who is served, what is refused, and how it starts and stops."""

import json
import math
import signal
import socket
import subprocess
import time

import pytest

import hotlap
from play_process import PlayProcess

TOKEN = "a-token-nobody-else-knows"


def test_the_status_says_what_the_server_offers(play_server):
    answer = play_server.get("/api/status")
    assert answer.status == 200
    assert answer.json["server"] == "hotlap"
    assert answer.json["physics"] == hotlap.PHYSICS_VERSION
    assert {"board", "runs", "drawings"} <= set(answer.json["features"])


def test_every_answer_forbids_other_hosts_and_frames(play_server):
    for path in ("/api/status", "/api/nothing", "/data/tracks.json", "/sim.wasm"):
        headers = play_server.get(path).headers
        assert "default-src 'self'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers


def test_static_files_have_their_type_and_are_not_sent_twice(play_server):
    first = play_server.get("/sim.wasm")
    assert first.status == 200
    assert first.headers["content-type"] == "application/wasm"
    again = play_server.get("/sim.wasm", **{"If-None-Match": first.headers["etag"]})
    assert (again.status, again.body) == (304, b"")
    assert play_server.get("/sim.json").headers["content-type"] == "application/json"


def test_data_files_are_those_of_the_static_site(play_server):
    from hotlap.web.page_data import file_names, page_file

    for name in file_names():
        answer = play_server.get(f"/data/{name}")
        assert answer.status == 200
        assert (answer.body, answer.headers["content-type"]) == page_file(name)


@pytest.mark.parametrize(
    "path",
    ["/nothing.html", "/../server.py", "/..%2fserver.py", "/%2e%2e/server.py", "//etc/passwd", "/static/", "/js",
     "/data/../server.py", "/data/..%2f..%2fserver.py", "/data/", "/api", "/api/", "/api/tracks/", "/api/tracks/x",
     "/api/tracks/..%2f..%2fx", "/api/runs/..", "/api/runs/x", "/api/replays/1e9", "/api/replays/-1", "/api/replays/x",
     "/api/drivers/run:../policy", "/api/drivers/x/policy", "/api/drivers/run:x@7/policy", "/index.html%00",
     "/api/board?track=x", "/api/board?track=../track-01", "/api/runs/x/checkpoints/1/policy"],
)  # fmt: skip
def test_what_is_not_listed_is_not_found(play_server, path):
    answer = play_server.get(path)
    assert answer.status == 404
    assert answer.error


FOREIGN_HOSTS = ["example.org", "example.org:{port}", "127.0.0.1", "127.0.0.1:80", "127.0.0.1.example.org:{port}"]


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_a_foreign_host_is_refused(play_server, host):
    for path in ("/", "/api/status", "/api/tracks"):
        answer = play_server.get(path, Host=host.format(port=play_server.port))
        assert answer.status == 403
        assert "does not answer for host" in answer.error


@pytest.mark.parametrize("origin", ["http://example.org", "null", "http://localhost:1", "https://127.0.0.1", ""])
def test_a_foreign_origin_is_refused(play_server, origin):
    assert play_server.get("/api/tracks", Origin=origin).status == 403
    answer = play_server.post("/api/runs", {"track": "track-01"}, Origin=origin)
    assert answer.status == 403
    assert "may not use this server" in answer.error
    assert play_server.get("/api/runs").json == []


def test_the_servers_own_origin_is_accepted(play_server):
    for name in ("127.0.0.1", "localhost"):
        own = f"{name}:{play_server.port}"
        assert play_server.get("/api/status", Host=own, Origin=f"http://{own}").status == 200


def test_a_body_must_be_json_of_a_known_length(play_server):
    path, good = "/api/replays/check", b'{"replay":"x"}'
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        assert play_server.ask("POST", path, good, {"Content-Type": kind}).status == 415
    as_json = {"Content-Type": "application/json"}
    assert play_server.ask("POST", path, good, as_json).status == 422
    for body in (
        b"",
        b"{",
        b"[]",
        b"1",
        b'{"replay":1}',
        b'{"other":1}',
        b'{"replay":"x","more":1}',
        b"\xff",
        b"[" * 9000,
    ):
        answer = play_server.ask("POST", path, body, as_json)
        assert answer.status == 400
        assert answer.error
    chunked = play_server.ask("POST", path, None, {**as_json, "Transfer-Encoding": "chunked"})
    assert chunked.status == 411


def test_a_body_that_is_too_large_is_refused_before_it_is_sent(play_server):
    with socket.create_connection(("127.0.0.1", play_server.port), 10.0) as plain:
        head = f"POST /api/board HTTP/1.1\r\nHost: 127.0.0.1:{play_server.port}\r\nContent-Type: application/json\r\n"
        plain.sendall(head.encode() + b"Content-Length: 1000000000\r\n\r\n{")
        answer = b"".join(iter(lambda: plain.recv(4096), b""))
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"at most 524288 bytes" in answer
    assert play_server.post("/api/runs", {"track": "t" * 5000}).status == 413


def test_a_wrong_method_is_refused(play_server):
    for method, path in (("DELETE", "/api/board"), ("PUT", "/api/tracks"), ("POST", "/api/status"), ("POST", "/")):
        answer = play_server.ask(method, path, b"{}", {"Content-Type": "application/json"})
        assert answer.status == 405
        assert answer.error


def test_too_many_requests_are_refused_and_the_server_goes_on(entered_board, tmp_path, monkeypatch):
    monkeypatch.setattr(PlayProcess, "popen", subprocess.Popen)
    with PlayProcess(tmp_path, board=entered_board) as server:
        body = json.dumps({"replay": "x"}).encode()
        answers = [
            server.ask("POST", "/api/replays/check", body, {"Content-Type": "application/json"}) for _ in range(120)
        ]
        refused = [answer for answer in answers if answer.status == 429]
        assert refused
        assert int(refused[0].headers["retry-after"]) >= 1
        assert {answer.status for answer in answers} == {422, 429}
        assert server.get("/api/status").status == 200


@pytest.mark.timeout(180)
def test_with_a_token_only_its_bearer_is_served_and_a_cookie_stands_for_it(compiled, tmp_path):
    with PlayProcess(tmp_path, HOTLAP_PLAY_TOKEN=TOKEN) as server:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Cookie": f"hotlap_page_{server.port}={TOKEN}"}):
            assert server.get("/api/status", **headers).status == 401
        assert server.get("/api/status", Authorization=f"Bearer {TOKEN}").status == 200
        opened = server.get(f"/api/status?token={TOKEN}")
        assert opened.status == 200
        cookie = opened.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert TOKEN not in cookie
        assert server.get("/api/status", Cookie=cookie.partition(";")[0]).status == 200
        assert "set-cookie" not in server.get("/api/status", Cookie=cookie.partition(";")[0]).headers
        assert TOKEN not in server.log


@pytest.mark.timeout(180)
def test_a_port_in_use_gives_the_next_free_one_and_says_so(entered_board, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with PlayProcess(tmp_path, "--port", str(port), board=entered_board) as server:
            assert server.port > port
            assert f"[play] port {port} is in use, so this is port {server.port}\n" in server.log
            assert server.get("/api/status").status == 200
            started_s = time.monotonic()
            assert server.interrupt(signal.SIGINT) == 0
            assert time.monotonic() - started_s < 15.0
    assert "Traceback" not in server.log


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_connection_that_sends_no_request_is_closed_after_a_while(play_server):
    with socket.create_connection(("127.0.0.1", play_server.port), 60.0) as plain:
        plain.sendall(b"GET / HT")
        assert plain.recv(100) == b""
    # Nor does one that has sent a request before, and then drips.
    with socket.create_connection(("127.0.0.1", play_server.port), 60.0) as plain:
        plain.sendall(f"GET /api/status HTTP/1.1\r\nHost: 127.0.0.1:{play_server.port}\r\n\r\n".encode())
        assert plain.recv(9999).startswith(b"HTTP/1.1 200")
        began_s = time.monotonic()
        try:
            while time.monotonic() - began_s < 90.0:
                plain.sendall(b"G")
                time.sleep(0.5)
        except OSError:  # closed by the server
            pass
    assert time.monotonic() - began_s < 60.0


def test_a_warning_is_shown_once_on_the_terminal(entered_board, tmp_path):
    # A hairpin whose inside has no room for the road, checked again and again while it is drawn.
    radii = [60.0] * 20 + [6.0] * 3 + [60.0] * 20
    angles = [2.0 * math.pi * number / len(radii) for number in range(len(radii))]
    points = [[radius * math.cos(angle), radius * math.sin(angle)] for radius, angle in zip(radii, angles, strict=True)]
    with PlayProcess(tmp_path, board=entered_board) as server:
        for _ in range(3):
            for width_m in (12.0, 20.0, 30.0):
                assert server.post("/api/drawings/check", {"points": points, "width_m": width_m}).status == 200
        lines = server.log.splitlines()
    assert len(lines) > 1, "no warning was logged at all"
    assert len(lines) == len(set(lines))
