"""Roads that the page builds itself, without a server: the same as the server's, to the last bit."""

import base64
import json
import urllib.request

import numpy as np
import pytest

from hotlap.sim.ribbon import NODE_DTYPE, PORTAL_DTYPE, TRACK_DTYPE

pytestmark = pytest.mark.timeout(120)


def loop(*harmonics, count=18, size=130.0):
    """A closed line around the origin whose radius waves."""
    angle = 2.0 * np.pi * np.arange(count) / count
    radius = size * (1.0 + sum(share * np.sin(k * angle + phase) for k, share, phase in harmonics))
    return np.round(np.stack([1.3 * radius * np.cos(angle), radius * np.sin(angle)], axis=1), 2).tolist()


EIGHT = [[round(170 * np.sin(t), 2), round(110 * np.sin(2 * t), 2)] for t in 2 * np.pi * (np.arange(32) + 0.5) / 32]
DRAWINGS = {
    "round": (loop(), 12.0),
    "wavy": (loop((2, 0.3, 0.4), (3, 0.2, 1.0)), 12.0),
    "tight": (loop((5, 0.33, 0.2), count=40), 14.0),
    "wide": (loop((4, 0.38, 0.9), count=30), 20.0),
    "narrow legs": (
        [
            [-200, 0],
            [-196, 8],
            [-186, 11],
            [-90, 11],
            [0, 11],
            [90, 11],
            [186, 11],
            [196, 8],
            [200, 0],
            [196, -8],
            [186, -11],
            [90, -11],
            [0, -11],
            [-90, -11],
            [-186, -11],
            [-196, -8],
        ],
        9.0,
    ),
    "eight": (EIGHT, 12.0),
}
FAULTY = {
    "folded": ([[0, 0], [100, 0], [100, 100], [50, 100], [50, 0.5], [50, 100.5], [0, 100], [-50, 50]], 12.0),
    "too tight": (loop((9, 0.5, 0.0), count=36, size=60.0), 20.0),
    "too short": (loop(size=9.0), 7.0),
}


def ask_server(web_server, points, width_m):
    body = json.dumps({"points": points, "width_m": width_m}).encode()
    request = urllib.request.Request(web_server.url + "api/drawings/check", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


BUILD = """(async (points, width_m) => {
  const { buildDrawing } = await import('./js/road_builder.js');
  const answer = await buildDrawing({ points, width_m }, hotlap.app.engine.description);
  const { toText } = await import('./js/replay.js');
  return { ...answer, buffer: answer.ok ? toText(new Uint8Array(answer.buffer)) : null, line: null };
})"""


def unpack(content):
    length = int.from_bytes(content[4:8], "little")
    header, at, parts = json.loads(content[8 : 8 + length]), 8 + length, []
    for dtype, count in ((TRACK_DTYPE, 1), (NODE_DTYPE, header["num_nodes"]), (PORTAL_DTYPE, header["num_portals"])):
        parts.append(np.frombuffer(content, dtype, count, at))
        at += dtype.itemsize * count
    return header, parts


def test_a_road_of_the_page_is_the_servers_to_the_last_bit(web_server, used_server_page):
    for name, (points, width_m) in DRAWINGS.items():
        wanted = ask_server(web_server, points, width_m)
        assert wanted["ok"], (name, wanted)
        made = used_server_page.evaluate(f"{BUILD}({json.dumps(points)}, {width_m})")
        assert made["ok"], (name, made)
        assert made["road"] == wanted["road"], name
        header, there = unpack(base64.b64decode(wanted["track"]))
        own, here = unpack(base64.urlsafe_b64decode(made["buffer"] + "=="))
        assert own["corners"] == header["corners"], name
        for mine, servers in zip(here, there, strict=True):
            for column in mine.dtype.names:
                if column in ("start_speed_mps", "guide_mps"):
                    assert mine[column] == pytest.approx(servers[column], rel=1e-5), name
                else:
                    assert mine[column].tobytes() == servers[column].tobytes(), (name, column)


def test_the_page_refuses_what_the_server_refuses_at_the_same_point(web_server, used_server_page):
    for name, (points, width_m) in FAULTY.items():
        wanted = ask_server(web_server, points, width_m)
        made = used_server_page.evaluate(f"{BUILD}({json.dumps(points)}, {width_m})")
        assert not wanted["ok"], name
        assert not made["ok"], name
        assert made["fault"]["text"][:30] == wanted["fault"]["text"][:30], name
        if name != "too short":
            assert made["fault"]["point"] == wanted["fault"]["point"], name
