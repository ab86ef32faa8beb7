"""What a foreign page can make a browser send to the page's server: pictures, links and event streams, without Origin.

A browser says by `Sec-Fetch-Site` from where a request comes. Pages cannot change that header.
"""

import http.client
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from hotlap.runs.run_lock import RunLock
from hotlap.web.api_runs import MAX_STREAMS
from play_process import PlayProcess
from reports.written_runs import write_run

RUN = "shown"
GETS = (
    "/api/status", "/api/tracks", "/api/tracks?split=1", "/api/tracks/track-02", "/api/tracks/train-001",
    "/api/tracks/track-01/centreline.csv", "/api/tracks/track-01/optimal", "/api/tracks/train-001/optimal",
    "/api/drivers?track=track-01", "/api/drivers?track=train-001", "/api/drivers/champion/policy?track=track-01",
    "/api/drivers/casual/replay?track=track-02", "/api/drivers/casual/replay?track=train-001",
    "/api/drivers/optimal/replay?track=track-03", "/api/board?track=track-01", "/api/board?track=train-001",
    "/api/board?track=train-002", "/api/board/export", "/api/replays/1", "/api/recipes", "/api/runs",
    f"/api/runs/{RUN}", f"/api/runs/{RUN}/events", "/data/tracks.json", "/data/train-001.track",
)  # fmt: skip
FOREIGN = ("cross-site", "same-site", "CROSS-SITE", " cross-site", "cross-site, same-origin", "none, cross-site", "x")


@pytest.fixture(scope="module")
def server(entered_board, tmp_path_factory):
    """A server that shows one run, and whose boards have the drivers that ship."""
    folder = tmp_path_factory.mktemp("foreign")
    write_run(folder / "results" / "experiments" / RUN)
    with PlayProcess(folder, board=entered_board) as running:
        for track in ("track-01", "track-02", "track-03"):
            running.wait_for(f"/api/board?track={track}", lambda found: len(found) >= 4)
        yield running


@pytest.mark.integration
@pytest.mark.parametrize("site", FOREIGN)
def test_a_picture_on_a_foreign_page_gets_nothing(server, site):
    for path in GETS:
        answer = server.get(path, **{"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"})
        assert answer.status == 403, path
        assert "may not use this server" in answer.error


@pytest.mark.integration
def test_one_foreign_value_among_several_is_enough(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30.0)
    connection.putrequest("GET", "/api/status")
    for site in ("cross-site", "same-origin"):
        connection.putheader("Sec-Fetch-Site", site)
    connection.endheaders()
    assert connection.getresponse().status == 403
    connection.close()


@pytest.mark.integration
@pytest.mark.parametrize("name", ["Host", "Origin"])
@pytest.mark.parametrize("user", ["evil@", "evil.com\\@", "evil:secret@", "@"])
def test_a_user_before_the_servers_own_address_is_refused(server, name, user):
    """Another reader of such an address may take what stands before the @ for the host."""
    scheme = "http://" if name == "Origin" else ""
    assert server.get("/api/status", **{name: f"{scheme}{user}127.0.0.1:{server.port}"}).status == 403
    assert server.get("/api/status", **{name: f"{scheme}127.0.0.1:{server.port}"}).status == 200


@pytest.mark.integration
def test_a_link_on_a_foreign_page_opens_the_page_but_nothing_else(server):
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert server.get("/", **link).status == 200
    assert server.get("/?track=track-02", **link).status == 200
    assert server.get("/api/board/export", **link).status == 403
    assert server.post("/api/board", {"track": "track-01", "driver_id": "casual"}, **link).status == 403


@pytest.mark.integration
@pytest.mark.parametrize("site", ["same-origin", "none", None])
def test_the_page_itself_and_a_typed_address_get_everything(server, site):
    for path in GETS:
        answer = server.get(path, **({"Sec-Fetch-Site": site} if site else {}))
        assert answer.status == 200, (path, answer.body[:200])


def rows_and_files(server: PlayProcess) -> tuple[list, dict]:
    """Every row of the board, and every other file of the server's folders with its content's size and time."""
    with closing(sqlite3.connect(server.home / "board.sqlite3")) as database:
        rows = database.execute("SELECT id, track, driver, date FROM entries ORDER BY id").fetchall()
    files = {}
    for top in (server.home, server.folder / "results"):
        for name in (Path(place) / name for place, _, names in os.walk(top) for name in names):
            if not name.name.startswith("board.sqlite3"):
                status = name.stat()
                files[str(name)] = (status.st_size, status.st_mtime_ns)
    return rows, files


@pytest.mark.integration
@pytest.mark.timeout(120)
def test_no_get_writes_anything(server):
    before = rows_and_files(server)
    assert len(before[0]) >= 12
    # Tracks that no other test has looked at.
    for path in (path.replace("train-001", "train-003").replace("train-002", "train-004") for path in GETS):
        assert server.get(path).status == 200, path
        assert server.ask("HEAD", path).status in (200, 405), path
    # What a request leaves to be done later is done before this one.
    assert server.get("/api/tracks").status == 200
    assert rows_and_files(server) == before


@pytest.mark.integration
@pytest.mark.skipif(os.name != "posix", reason="the lock is this process's")
def test_event_streams_of_a_foreign_page_do_not_shut_the_own_page_out(server):
    folder = server.folder / "results" / "experiments" / "training"
    write_run(folder)
    lock = RunLock(folder)
    lock.acquire()
    streams = []
    try:
        for _ in range(MAX_STREAMS + 1):
            stream = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30.0)
            streams.append(stream)
            stream.request("GET", "/api/runs/training/events", headers={"Sec-Fetch-Site": "cross-site"})
            assert stream.getresponse().status == 403
        own = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30.0)
        streams.append(own)
        own.request("GET", "/api/runs/training/events", headers={"Sec-Fetch-Site": "same-origin"})
        response = own.getresponse()
        assert response.status == 200
        assert response.readline() == b"event: run\n"
    finally:
        for stream in streams:
            stream.close()
        lock.release()
