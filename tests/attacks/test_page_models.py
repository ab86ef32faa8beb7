"""Damaged and forged models and runs in the results folder, used through the page: refused in one line, no failure."""

import asyncio
import itertools
import json
import random
import struct
from collections import Counter
from pathlib import Path

import pytest

from attacks.model_mutations import BOMBS, make_bomb, mutate_bytes, mutation, resealed, unzip, zip_members
from attacks.request_senders import ask_app
from hotlap.bridge.access import AccessRules, RateLimit
from hotlap.models.shipped_models import shipped_path
from hotlap.web import server as server_module
from hotlap.web.leaderboard import Leaderboard
from hotlap.web.services import PageServices
from reports.written_runs import write_events, write_run
from web.hostile_requests import HostileRequest

NUM_MUTATIONS = 30
LOGGED = {"rollout/ep_rew_mean": [(100, 1.0), (200, 2.0)], "eval/completion_rate": [(200, 1.0)]}
JSON = {"Content-Type": "application/json"}


class Page:
    """The page's application in this process, and a run of somebody else in its results folder."""

    def __init__(self, folder: Path) -> None:
        self.run = folder / "results" / "experiments" / "stranger"
        write_run(self.run)
        self.model = self.run / "ppo_seed1_best.zip"
        self.checkpoint = self.run / "checkpoint_100.zip"
        self.services = PageServices(Leaderboard(folder / "board.sqlite3"))
        self.services.computing = self.services.starting = RateLimit(1e9, 10**9)
        self.app = server_module.make_app(self.services, AccessRules("127.0.0.1", 8000, None))

    def ask(self, method: str, target: str, body: object = None) -> tuple[int, bytes]:
        content = b"" if body is None else json.dumps(body).encode()
        return asyncio.run(ask_app(self.app, HostileRequest(method, target, JSON if content else {}, content), 8000))

    def look(self) -> list[tuple[int, bytes]]:
        """What shows the run."""
        paths = ("runs", "runs/stranger", "runs/stranger/events", "drivers?track=track-01")
        return [self.ask("GET", f"/api/{path}") for path in paths]

    def use(self) -> tuple[list[tuple[int, bytes]], ...]:
        """Everything that the page does with a run and its models: what lists them, their policies and drives."""
        policies = ("drivers/run:stranger", "drivers/run:stranger@100", "runs/stranger/checkpoints/100")
        drivers = ("run:stranger", "run:stranger@100")
        return (
            self.look(),
            [self.ask("GET", f"/api/{path}/policy") for path in policies],
            [self.ask("POST", "/api/board", {"track": "track-01", "driver_id": driver}) for driver in drivers],
        )

    def write(self, content: bytes) -> None:
        self.model.write_bytes(content)
        self.checkpoint.write_bytes(content)


@pytest.fixture
def page(compiled, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(server_module, "RateLimit", lambda *_: RateLimit(1e9, 10**9))
    made = Page(tmp_path)
    yield made
    made.services.close()


@pytest.fixture(scope="module")
def shipped() -> bytes:
    return shipped_path("champion", "track-01").read_bytes()


def assert_refused(answers: list[tuple[int, bytes]]) -> None:
    """In one printable line that says why."""
    for status, body in answers:
        assert status == 422, body
        text = json.loads(body)["error"]
        assert text.isprintable()
        assert "stranger" in text or "checkpoint_100" in text


def with_weights(content: bytes, *values: float) -> bytes:
    """The model with these weights, again and again, and right digests."""
    members = unzip(content)
    payload = members["policy.safetensors"]
    start = 8 + int.from_bytes(payload[:8], "little")
    numbers = struct.pack(f"<{len(values)}f", *values) * ((len(payload) - start) // 4)
    members["policy.safetensors"] = payload[:start] + numbers[: len(payload) - start]
    return zip_members(list(resealed(members).items()))


DAMAGES = {
    "empty": lambda content: b"",
    "text": lambda content: b"hello",
    "cut off": lambda content: content[: len(content) // 2],
    "one bit": lambda content: content[:5000] + bytes([content[5000] ^ 1]) + content[5001:],
    "NaN weights": lambda content: with_weights(content, float("nan")),
    "infinite weights": lambda content: with_weights(content, float("inf")),
    "too much inflated": lambda content: make_bomb(content, *BOMBS[4]),
    "no tensors": lambda content: make_bomb(content, "policy.safetensors", b"x", b"", 0, b""),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_model_is_refused_in_one_line(page, shipped, damage):
    page.write(damage(shipped))
    listings, policies, drives = page.use()
    assert [status for status, _ in listings] == [200, 200, 200, 200]
    assert_refused(policies)
    assert_refused(drives)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_model_whose_actions_are_no_numbers_is_refused_in_one_line(page, shipped, sign):
    """Weights that are finite, but whose products are not."""
    page.write(with_weights(shipped, 3e38, sign * 3e38))
    _, policies, drives = page.use()
    assert_refused(policies)
    assert_refused(drives)
    assert "its weights are too large" in json.loads(drives[0][1])["error"]
    assert page.services.leaderboard.export() == []


@pytest.mark.timeout(300)
def test_no_mutation_of_a_model_makes_the_server_fail(page, shipped):
    rng = random.Random(42)
    statuses = Counter()
    for number in range(NUM_MUTATIONS):
        kind, content = mutation(rng, shipped)
        page.write(content)
        for status, body in itertools.chain(*page.use()):
            statuses[status] += 1
            assert status < 500, (number, kind, body)
    assert statuses[422] > NUM_MUTATIONS


@pytest.mark.timeout(300)
def test_no_damage_to_the_other_files_of_a_run_makes_the_server_fail(page, shipped):
    page.write(shipped)
    write_events(page.run / "tensorboard" / "events.out.tfevents.1700000000.test.1.1", LOGGED)
    rng = random.Random(7)
    files = [path for path in page.run.rglob("*") if path.is_file() and path.suffix != ".zip"]
    assert {path.name.partition(".")[0] for path in files} >= {"config", "events", "ppo_seed1_results"}
    for path in files:
        whole = path.read_bytes()
        for content in (b"", b"\0", b"[" * 5000, *(mutate_bytes(rng, whole) for _ in range(8))):
            path.write_bytes(content)
            for status, body in (*page.look(), page.ask("POST", "/api/runs/stranger/stop", {})):
                assert status < 500, (path.name, content[:80], body)
        path.write_bytes(whole)
    assert [status for status, _ in page.look()] == [200, 200, 200, 200]
