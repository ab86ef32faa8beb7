"""What was tried against the page's server: hostile requests by the thousand, and reading outside its folders."""

import asyncio
import errno
import json
import os
import socket
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest

from attacks.request_senders import OpenedFiles, RawClient, ask_app
from hotlap.drivers.casual import CasualDriver, CasualHabits
from hotlap.web.replay_format import Replay
from hotlap.web.replays import record_drive
from play_process import PlayProcess
from web.hostile_requests import Attacker

MEBIBYTE = 1 << 20
CANARY = "the-canary-must-not-be-read"


@pytest.fixture(scope="module")
def lap(compiled) -> Replay:
    """A real lap that is on no board."""
    return record_drive(CasualDriver(CasualHabits(grip_share=0.71)), "track-01", num_laps=1, is_quantised=True)


def plant_canaries(folder: Path) -> None:
    """Secrets beside the server's folders, and links in its results folder that lead to them."""
    outside = folder / "outside"
    outside.mkdir()
    for name in ("secret.txt", "config.toml", "checkpoint_1.zip", "ppo_seed1_best.zip"):
        (outside / name).write_text(CANARY, encoding="utf-8")
    experiments = folder / "results" / "experiments"
    (experiments / "linked-run").mkdir(parents=True)
    (experiments / "link").symlink_to(outside, target_is_directory=True)
    for name in ("config.toml", "checkpoint_1.zip", "ppo_seed1_best.zip"):
        (experiments / "linked-run" / name).symlink_to(outside / name)
    (folder / "home" / "tracks").mkdir(parents=True, exist_ok=True)
    (folder / "home" / "secret.txt").write_text(CANARY, encoding="utf-8")


def entries_of(server: PlayProcess) -> Any:
    """Every entry of the board, as soon as the attack no longer uses up the rate."""
    return server.wait_for("/api/board/export", lambda answer: "entries" in answer)["entries"]


@pytest.mark.integration
@pytest.mark.parametrize(
    "count", [pytest.param(600, marks=pytest.mark.timeout(180)),
              pytest.param(100_000, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])],
)  # fmt: skip
def test_the_server_survives_hostile_requests_and_its_board_is_unchanged(
    lap, entered_board, tmp_path, count, monkeypatch
):
    monkeypatch.setattr(PlayProcess, "popen", subprocess.Popen)  # its memory is measured
    plant_canaries(tmp_path)
    with PlayProcess(tmp_path, board=entered_board) as server:
        for track in ("track-01", "track-02", "track-03"):  # waits for the drivers that the server looks for at start
            server.get(f"/api/board?track={track}")
        before = entries_of(server)
        assert len(before) >= 4
        process = psutil.Process(server.process.pid)
        client, statuses, peak = RawClient(server.port), Counter(), 0
        for number, request in enumerate(Attacker(count, lap).requests(count)):
            status, body = client.send(request)
            statuses[status] += 1
            assert CANARY.encode() not in body, request
            assert status != 500, (request, body)
            if number % 200 == 0:
                peak = max(peak, process.memory_info().rss)
        peak = max(peak, process.memory_info().rss)
        client.close()
        assert {200, 400, 403, 404, 405, 429} <= set(statuses)
        assert peak < 400 * MEBIBYTE
        assert entries_of(server) == before
        assert server.get("/api/status").status == 200
        assert server.get("/api/runs").json == []
        assert list((server.home / "tracks").iterdir()) == []
        assert {path.name for path in (tmp_path / "results/experiments").iterdir()} == {"link", "linked-run"}
        assert "Traceback" not in server.log
        # A real lap of a person still gets in.
        body = {"track": "track-01", "driver": "Ada", "replay": lap.to_text()}
        assert server.post("/api/board", body).status == 201
        print(f"{count} requests: {dict(statuses)}, {peak / MEBIBYTE:.0f} MB")


# --- without the limits on rates: every request reaches its route ---


@pytest.mark.parametrize(
    "count", [pytest.param(500, marks=pytest.mark.timeout(240)),
              pytest.param(20_000, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])],
)  # fmt: skip
def test_no_request_opens_a_file_outside_the_servers_folders(lap, tmp_path, monkeypatch, count):
    import hotlap
    from hotlap.bridge.access import AccessRules, RateLimit
    from hotlap.sim.compilation import cache_root
    from hotlap.web import server as server_module
    from hotlap.web.leaderboard import Leaderboard, leaderboard_path
    from hotlap.web.services import PageServices

    plant_canaries(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOTLAP_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(server_module, "RateLimit", lambda *_: RateLimit(1e9, 10**9))
    services = PageServices(Leaderboard(leaderboard_path()))
    services.computing = services.starting = RateLimit(1e9, 10**9)
    app = server_module.make_app(services, AccessRules("127.0.0.1", 8000, None))
    services.enter_driver("casual", "track-01")
    before = services.leaderboard.export()
    opened = OpenedFiles()

    async def attack() -> Counter[int]:
        statuses: Counter[int] = Counter()
        for request in Attacker(count, lap).requests(count):
            status, body = await ask_app(app, request, 8000)
            statuses[status] += 1
            assert CANARY.encode() not in body, request
            assert status != 500, (request, body)
        return statuses

    try:
        with opened:
            statuses = asyncio.run(attack())
    finally:
        services.close()
    after = Leaderboard(leaderboard_path())
    assert [entry for entry in after.export() if entry["kind"] == "human"] == []
    assert [entry for entry in after.export() if entry["id"] <= len(before)] == before
    after.close()
    assert {200, 400, 403, 404, 405, 411, 413, 422} & set(statuses) >= {200, 400, 403, 404, 405, 413, 422}
    system = map(Path, (sys.prefix, sys.base_prefix, "/usr", "/dev", "/sys", "/proc/self", "/etc/mime.types"))
    allowed = [Path(hotlap.__file__).parent, tmp_path / "home", tmp_path / "results", cache_root(), *system]
    drafts = [path for path in opened.paths if "/hotlap-" in path]
    assert drafts  # drawings are written to a folder of their own
    strays = [
        path for path in sorted(set(opened.paths) - set(drafts))
        if not any(Path(path).is_relative_to(folder) for folder in allowed)
    ]  # fmt: skip
    assert strays == []
    real = {os.path.realpath(path) for path in opened.paths}
    assert not any(path.startswith(str(tmp_path / "outside")) for path in real), "a link was followed"
    assert str(tmp_path / "home" / "secret.txt") not in real


# --- connections ---


def test_garbage_on_the_wire_is_answered_or_closed(play_server):
    port = play_server.port
    for garbage in (
        b"\0" * 100,
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X: " + b"y" * 200_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X-Y: z\r\n" * 20_000 + b"\r\n",
        b"POST /api/board HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: -1\r\n\r\n" % port,
        b"POST /api/board HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n12345" % port,
        b"POST /api/board HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n" % port,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", port), 10.0) as plain:
            try:
                plain.sendall(garbage)
                plain.shutdown(socket.SHUT_WR)
                answer = plain.recv(4096)
            except OSError as error:
                # The server has closed the connection; a shutdown of one that was reset is not a ConnectionError.
                if not isinstance(error, ConnectionError) and error.errno != errno.ENOTCONN:
                    raise
                answer = b""
        assert not answer.startswith(b"HTTP/1.1 2"), garbage[:60]
        assert not answer.startswith(b"HTTP/1.1 500"), garbage[:60]
    assert play_server.get("/api/status").status == 200
    assert "Traceback" not in play_server.log


def test_a_websocket_is_not_opened(play_server):
    answer = play_server.get("/ws", Connection="Upgrade", Upgrade="websocket", **{"Sec-WebSocket-Version": "13"})
    assert answer.status in (404, 426, 400)


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_idle_connections_do_not_lock_others_out(compiled, tmp_path):
    with PlayProcess(tmp_path) as server:
        idle = [socket.create_connection(("127.0.0.1", server.port), 10.0) for _ in range(200)]
        try:
            assert server.get("/api/status").status == 200
            more = [socket.create_connection(("127.0.0.1", server.port), 10.0) for _ in range(200)]
            idle += more
            assert server.get("/api/status").status in (200, 503)
        finally:
            for one in idle:
                one.close()
        server.wait_for("/api/status", lambda status: status.get("server") == "hotlap")


def test_a_replay_of_ten_minutes_delays_others_only_for_a_moment(play_server, lap):
    """Worst case of one request: 36,000 ticks with a new input on each."""
    import time

    import numpy as np

    from hotlap.web.replay_format import quantise

    actions = quantise(np.random.default_rng(0).random((36_000, 3)).astype(np.float32))
    body = {"replay": Replay(lap.track_digest, actions, 1, np.float32(20.0)).to_text()}
    slow = threading.Thread(target=play_server.post, args=("/api/replays/check", body))
    slow.start()
    waits_s = []
    while slow.is_alive():
        began_s = time.monotonic()
        assert play_server.get("/api/status").status == 200
        waits_s.append(time.monotonic() - began_s)
    slow.join()
    assert max(waits_s) < 5.0  # a guard against blocking, not a measure of speed


def test_a_hostile_request_writes_no_line_of_its_own_to_the_log(entered_board, tmp_path):
    with PlayProcess(tmp_path, "--verbose", board=entered_board) as server:
        for headers in ({"Origin": "http://e\x1b[2J\x07"}, {"Host": "x\x1b]0;owned"}):
            try:
                server.get("/api/status", **headers)
            except (ValueError, ConnectionError, OSError):
                continue
        server.get("/%1b%5b2J%0a[play]%20listening%20on%20http://evil")
        log = server.log_path.read_bytes()
    assert all(line.decode("utf-8").isprintable() for line in log.splitlines())
    assert all(line.startswith(b"[play] ") for line in log.splitlines())
    assert log.count(b"listening on") == 1


@pytest.mark.slow
def test_a_body_that_never_arrives_is_given_up(play_server):
    from hotlap.web.answers import BODY_TIMEOUT_S

    with socket.create_connection(("127.0.0.1", play_server.port), BODY_TIMEOUT_S + 20.0) as plain:
        head = f"POST /api/board HTTP/1.1\r\nHost: 127.0.0.1:{play_server.port}\r\nContent-Type: application/json\r\n"
        plain.sendall(head.encode() + b"Content-Length: 100\r\n\r\n{")
        answer = b"".join(iter(lambda: plain.recv(4096), b""))
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"did not arrive within" in answer
    assert json.loads(answer.rpartition(b"\r\n\r\n")[2])["error"]
