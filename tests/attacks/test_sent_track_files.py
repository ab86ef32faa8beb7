"""Hostile track files through the page's door: mutated ones of each format, under names that are made to be harmful."""

import asyncio
import base64
import json
import random
import time
from collections import Counter

import pytest

from attacks.request_senders import ask_app
from hotlap.bridge.access import AccessRules, RateLimit
from hotlap.tracks.registry import list_tracks, load_track
from tracks.files.test_track_import_maps import mutate
from tracks.map_texts import geojson_text, osm_text
from web.hostile_requests import NAMES, HostileRequest
from web.test_track_files import TUM

TEXTS = {".osm": osm_text(), ".geojson": geojson_text(attribution="The club"), ".csv": TUM}
NUM_FILES = 200


@pytest.fixture
def app(compiled, tmp_path, monkeypatch):
    """The application without limits on rates, its home in a folder of its own."""
    from hotlap.web import server
    from hotlap.web.leaderboard import Leaderboard, leaderboard_path
    from hotlap.web.services import PageServices

    monkeypatch.setenv("HOTLAP_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(server, "RateLimit", lambda *_: RateLimit(1e9, 10**9))
    monkeypatch.setattr(PageServices, "enter_later", lambda *_: None)
    services = PageServices(Leaderboard(leaderboard_path()))
    services.computing = RateLimit(1e9, 10**9)
    yield server.make_app(services, AccessRules("127.0.0.1", 8000, None))
    services.close()


def test_mutated_files_do_no_harm(app, tmp_path):
    rng = random.Random(11)
    (tmp_path / "secret.txt").write_text("secret")
    statuses, slowest_s = Counter[int](), 0.0

    async def attack() -> None:
        nonlocal slowest_s
        for _ in range(NUM_FILES):
            suffix, text = rng.choice(list(TEXTS.items()))
            name = rng.choice([*NAMES, "\0", "\u202e", "a\nb", "x" * 240])[:240] + suffix
            for _ in range(rng.randint(1, 4)):
                text = mutate(rng, text).decode("latin-1")
            body = {"name": name, "content": base64.b64encode(text.encode("latin-1")).decode()}
            headers = {"Content-Type": "application/json"}
            begun_s = time.process_time()
            status, answer = await ask_app(
                app, HostileRequest("POST", "/api/track-files", headers, json.dumps(body).encode()), 8000
            )
            slowest_s = max(slowest_s, time.process_time() - begun_s)
            statuses[status] += 1
            found = json.loads(answer)
            if status == 422:
                assert found["error"].isprintable()
                assert str(tmp_path) not in found["error"]

    asyncio.run(attack())
    assert set(statuses) <= {200, 201, 422}, statuses
    assert min(statuses[201], statuses[422]) > 10
    assert slowest_s < 5.0
    # Every track that was saved can be driven, and nothing was written beside them.
    own = [entry.track_id for entry in list_tracks() if entry.source == "yours"]
    assert len(own) == statuses[201]
    assert all(load_track(track_id).nodes.num_nodes > 50 for track_id in own[:5])
    files = sorted(path.name for path in (tmp_path / "home" / "tracks").iterdir())
    assert files == sorted(f"{track_id}.csv" for track_id in own)
    assert {path.name for path in tmp_path.iterdir()} == {"home", "secret.txt"}
