import json
from dataclasses import replace

import numpy as np

from hotlap.tracks.registry import list_tracks
from hotlap.web import road_files as module
from hotlap.web.road_files import road_files

LINE_M = [[0.0, 0.0, 4.0, 5.0], [1.0, 0.5, 4.0, 5.0], [3.0, 1.0, 4.25, 4.999]]  # x, y, right, left


def test_a_line_is_its_second_differences_in_millimetres(tmp_path, monkeypatch):
    path = tmp_path / "road.csv"
    path.write_text("".join(",".join(map(str, row)) + "\n" for row in LINE_M))
    [known] = [entry for entry in list_tracks() if entry.track_id == "test-000"]
    built_in = [entry for entry in list_tracks() if entry.track_id == "track-01"]
    monkeypatch.setattr(module, "list_tracks", lambda: [replace(known, path=path), *built_in])
    [(name, content)] = road_files().items()  # a built-in track is not among them
    assert name == "test-000.road"
    road = json.loads(content)
    assert road["line"] == {
        "x": [0, 1000, 1000],
        "y": [0, 500, 0],
        "right": [4000, -4000, 250],
        "left": [5000, -5000, -1],
    }
    restored = np.cumsum(np.cumsum([road["line"][key] for key in ("x", "y", "right", "left")], axis=1), axis=1)
    np.testing.assert_array_equal(restored.T / 1000.0, LINE_M)
