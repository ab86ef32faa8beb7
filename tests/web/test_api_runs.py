"""Training from the page: an ordinary run in its own process, followed live, stopped, resumed."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hotlap.models.actor import pack_model
from hotlap.models.model_file import read_model
from play_process import PlayProcess
from web.unpacked_policy import unpack

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of another process")


def events(server: PlayProcess, run_id: str) -> Iterator[tuple[str, dict]]:
    """The server-sent events of a run, until the stream ends."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60.0)
    connection.request("GET", f"/api/runs/{run_id}/events")
    response = connection.getresponse()
    assert response.status == 200
    assert response.getheader("content-type").startswith("text/event-stream")
    name = ""
    try:
        while line := response.readline():
            text = line.decode().rstrip("\n")
            if text.startswith("event: "):
                name = text.removeprefix("event: ")
            elif text.startswith("data: "):
                yield name, json.loads(text.removeprefix("data: "))
    finally:
        connection.close()


def trainer_pid(server: PlayProcess, run_id: str) -> int:
    return json.loads((server.folder / "results/experiments" / run_id / ".run.lock").read_text())["pid"]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().split(")")[1][:3] if Path("/proc").is_dir() else True


def wait_until(is_reached) -> None:
    deadline_s = time.monotonic() + 30.0
    while not is_reached():
        assert time.monotonic() < deadline_s
        time.sleep(0.1)


@pytest.fixture
def play_folder(compiled, tmp_path) -> Iterator[Path]:
    """A folder for servers; whatever still trains in it at the end is killed."""
    yield tmp_path
    for lock in tmp_path.glob("results/experiments/*/.run.lock"):
        pid = json.loads(lock.read_text())["pid"]
        if is_alive(pid):
            os.kill(pid, signal.SIGKILL)


def test_a_wrong_request_starts_nothing(play_server):
    # `test_run_processes.py` has more; here each waits for the limit on starts.
    for status, body in (
        (404, {"track": "nowhere"}),
        (422, {"track": "track-01", "recipe": "../evil.toml"}),
        (400, {"track": "track-01", "device": "cuda"}),
    ):
        answer = play_server.post("/api/runs", body)
        assert answer.status == status, body
        assert answer.error
    assert play_server.get("/api/runs").json == []
    for path in ("/api/runs/x/stop", "/api/runs/x/resume"):
        assert play_server.post(path).status == 404
    assert play_server.get("/api/runs/x/events").status == 404


@pytest.mark.slow
@pytest.mark.integration
@pytest.mark.timeout(300)
def test_a_training_outlives_its_server_and_is_stopped_and_resumed(play_folder):
    with PlayProcess(play_folder) as server:
        started = server.post("/api/runs", {"track": "track-01", "steps": 5_000_000, "seed": 3})
        assert started.status == 201
        run_id = started.json["id"]
        assert started.json["state"] == "starting"
        assert started.json["casual_lap_time_sec"] > started.json["optimal_lap_time_sec"]
        seen = []
        for name, value in events(server, run_id):
            seen.append(name)
            if name == "curves" and "return" in value:
                break
        assert seen[0] == "run"
        pid = trainer_pid(server, run_id)
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
    reached = last_step(play_folder, run_id)
    assert is_alive(pid)
    with PlayProcess(play_folder) as server:
        run = server.wait_for(f"/api/runs/{run_id}", lambda run: run["step"] > reached)
        assert run["state"] == "running"
        assert len(run["curves"]["return"]["step"]) > 0
        run = server.wait_for(f"/api/runs/{run_id}", lambda run: run["checkpoints"])
        checkpoint = run["checkpoints"][0]
        assert_policy_of(server, run_id, checkpoint)
        # Stopping twice must not kill it before it has saved.
        assert [server.post(f"/api/runs/{run_id}/stop").status for _ in range(2)] == [202, 202]
        stopped = server.wait_for(f"/api/runs/{run_id}", lambda run: run["state"] != "running")
        assert stopped["state"] == "stopped"
        wait_until(lambda: not is_alive(pid))
        assert server.post(f"/api/runs/{run_id}/stop").status == 409
        assert stopped["checkpoints"][-1]["step"] > checkpoint["step"]
        drivers = {driver["id"]: driver for driver in server.get("/api/drivers?track=track-01").json}
        assert drivers[f"run:{run_id}"]["kind"] == "model"
        assert server.get(f"/{drivers[f'run:{run_id}']['policy']}").status == 200
        # `hotlap resume` knows the run; here the page asks for it.
        assert server.post(f"/api/runs/{run_id}/resume").status == 202
        assert server.post(f"/api/runs/{run_id}/resume").status == 409
        server.wait_for(f"/api/runs/{run_id}", lambda run: run["state"] == "running")
        assert server.post(f"/api/runs/{run_id}/stop").status == 202
        server.wait_for(f"/api/runs/{run_id}", lambda run: run["state"] == "stopped")
    answer = subprocess.run(
        [sys.executable, "-m", "hotlap", "resume", run_id, "--steps", "1000"],
        cwd=play_folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert answer.returncode == 2
    assert "--steps 1000: the run is already at step" in answer.stderr


def last_step(folder: Path, run_id: str) -> int:
    from hotlap.web.runs import _last_step

    return _last_step(folder / "results/experiments" / run_id / "ppo_seed3_metrics.jsonl")


def assert_policy_of(server: PlayProcess, run_id: str, checkpoint: dict) -> None:
    path = server.folder / "results/experiments" / run_id / f"checkpoint_{checkpoint['step']}.zip"
    packed, header = unpack(server.get(f"/{checkpoint['policy']}").body)
    assert packed.numbers.tobytes() == pack_model(read_model(path)).numbers.tobytes()
    assert header["action_repeat"] == 4
    missing = server.get(f"/api/runs/{run_id}/checkpoints/123/policy")
    assert missing.status == 404
