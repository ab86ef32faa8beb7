"""`hotlap tracks`: list, show, import and generate."""

import math
import re
from pathlib import Path

import pytest
from PIL import Image

from hotlap.drivers.driver import make_driver
from hotlap.evaluation.evaluate import evaluate
from hotlap.tracks.files.centreline_file import read_centreline
from hotlap.tracks.generation.circuit_generator import generate_circuit
from hotlap.tracks.geometry.centreline import length_m
from hotlap.tracks.registry import load_track
from hotlap.web.page_data import tracks_list
from tracks.map_texts import LENGTH_M, osm_text

GOOD = Path(str(load_track.__globals__["_DATA"])) / "track-01.csv"


def circle(radius_m: float = 60.0, width_m: float = 8.0) -> str:
    """A round track, driven to the left, 5 m from point to point."""
    count = round(2.0 * math.pi * radius_m / 5.0)
    angles = [2.0 * math.pi * k / count for k in range(count)]
    return "".join(
        f"{radius_m * math.cos(a):.4f},{radius_m * math.sin(a):.4f},{width_m / 2},{width_m / 2}\n" for a in angles
    )


@pytest.fixture
def round_file(tmp_path) -> Path:
    path = tmp_path / "round.csv"
    path.write_text("# x_m,y_m,w_tr_right_m,w_tr_left_m\n" + circle())
    return path


# --- list ---


def test_the_list_names_the_built_in_tracks_and_the_split_when_asked_for(hotlap, home, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    head, *lines = hotlap("tracks", "list").out.splitlines()
    assert re.split(r"  +", head) == ["track", "name", "length", "optimal lap", "character"]
    assert [line.split()[0] for line in lines[:3]] == ["track-01", "track-02", "track-03"]
    assert "train-000 to train-099, test-000 to test-024" in lines[-1]
    assert len(lines) == 4
    ids = [line.split()[0] for line in hotlap("tracks", "list", "--split").out.splitlines()[1:]]
    assert len(ids) == len(set(ids)) == 128
    rows = hotlap("tracks", "list", "--json").figures["tracks"]
    assert {"id", "name", "character", "source", "length_m", "optimal_lap_time_sec"} <= set(rows[0])
    sources = [row["source"] for row in rows]
    assert [sources.count(one) for one in ("built-in", "train", "test", "yours")] == [3, 100, 25, 0]


def test_the_list_has_the_names_and_figures_of_the_page(hotlap, home, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    page = tracks_list()
    lines = hotlap("tracks", "list").out.splitlines()[1:4]
    shown = [
        [row["id"], row["name"], f"{row['length_m']:,.0f} m", f"{row['optimal_lap_time_sec']:.2f} s", row["character"]]
        for row in page
    ]
    assert [re.split(r"  +", line) for line in lines] == shown
    assert hotlap("tracks", "list", "--json").figures["tracks"][:3] == page


def test_the_list_fits_a_terminal_of_80_columns_and_shows_files_that_cannot_be_used(hotlap, home, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    (home / "tracks").mkdir(parents=True)
    (home / "tracks" / "broken.csv").write_text("nothing\n")
    answer = hotlap("tracks", "list")
    assert answer.code == 0
    assert max(map(len, answer.out.splitlines())) <= 80
    assert re.search("^broken +broken +– +–  cannot be used", answer.out, re.MULTILINE)
    assert "broken.csv:1" in hotlap("tracks", "list", "--json").figures["tracks"][-1]["error"]


# --- show ---


def test_a_track_is_shown_and_drawn(hotlap, tmp_path):
    png = tmp_path / "a" / "track.png"
    answer = hotlap("tracks", "show", "track-01", "--png", png, "--json")
    assert answer.code == 0
    assert set(answer.figures) == {
        "id", "name", "character", "length_m", "min_radius_m", "min_width_m", "max_width_m", "medals_sec",
        "optimal_lap_time_sec", "png"
    }  # fmt: skip
    assert answer.figures["length_m"] == pytest.approx(load_track("track-01").nodes.length_m)
    with Image.open(png) as image:
        assert image.format == "PNG"
        assert min(image.size) > 300
    out = hotlap("tracks", "show", "track-03").out
    assert out.startswith("track-03: Thornback Ridge")
    assert "length" in out


def test_what_cannot_be_shown_is_refused(refused):
    assert "'../track-01' is not known" in refused("tracks", "show", "../track-01")
    assert "Did you mean 'track-01'?" in refused("tracks", "show", "track-01.csv")
    assert "is a folder" in refused("tracks", "show", "track-01", "--png", ".")


# --- import ---


def test_an_imported_track_is_listed_shown_and_driven(hotlap, home, round_file):
    answer = hotlap("tracks", "import", round_file, "--id", "my-ring", "--json")
    assert answer.code == 0
    assert answer.figures["id"] == "my-ring"
    assert answer.figures["length_m"] == pytest.approx(2.0 * math.pi * 60.0, rel=1e-3)
    assert Path(answer.figures["file"]) == home / "tracks" / "my-ring.csv"
    rows = hotlap("tracks", "list", "--json").figures["tracks"]
    named = {key: rows[-1][key] for key in ("id", "name", "character", "source")}
    assert named == {"id": "my-ring", "name": "my-ring", "character": "your own", "source": "yours"}
    assert rows[-1]["length_m"] == pytest.approx(answer.figures["length_m"], abs=1e-3)
    assert hotlap("tracks", "show", "my-ring", "--json").figures["min_radius_m"] == pytest.approx(60.0, rel=0.02)
    laps = hotlap("drive", "casual", "--track", "my-ring", "--laps", 2, "--json").figures["laps"]
    assert [lap["clean"] for lap in laps] == [True, True]


def test_the_optimal_line_is_drawn_where_it_is_known(hotlap, refused, home, round_file, tmp_path):
    plain, lined = tmp_path / "plain.png", tmp_path / "lined.png"
    hotlap("tracks", "show", "track-01", "--png", plain)
    assert hotlap("tracks", "show", "track-01", "--png", lined, "--optimal").code == 0
    assert plain.read_bytes() != lined.read_bytes()
    hotlap("tracks", "import", round_file, "--id", "my-ring")
    assert "hotlap optimal my-ring" in refused("tracks", "show", "my-ring", "--png", lined, "--optimal")


def test_importing_again_replaces_the_track_unless_it_fails(hotlap, refused, home, round_file):
    for radius_m in (60.0, 80.0):
        round_file.write_text(circle(radius_m))
        assert hotlap("tracks", "import", round_file, "--id", "mine").code == 0
        assert load_track("mine").nodes.length_m == pytest.approx(2.0 * math.pi * radius_m, rel=1e-3)
    before = (home / "tracks" / "mine.csv").read_bytes()
    round_file.write_text("nonsense")
    refused("tracks", "import", round_file, "--id", "mine")
    assert [path.read_bytes() for path in (home / "tracks").iterdir()] == [before]


def test_reverse_width_and_start(hotlap, home):
    options = ("--reverse", "--width", "12.5", "--start", "100")
    assert hotlap("tracks", "import", GOOD, "--id", "other", *options).code == 0
    original, mine = load_track("track-01").nodes, load_track("other").nodes
    assert mine.length_m == pytest.approx(original.length_m, rel=1e-3)
    assert (mine.road_left_m + mine.road_right_m) == pytest.approx(12.5, abs=0.01)
    # 100 m on, the other way round, is 100 m before the old line; headings are opposite there.
    old = round((original.length_m - 100.0) / original.step_m) % original.num_nodes
    heading = mine.tangent_x[0] * original.tangent_x[old] + mine.tangent_y[0] * original.tangent_y[old]
    assert heading == pytest.approx(-1.0, abs=0.02)
    assert math.hypot(mine.x_m[0] - original.x_m[old], mine.y_m[0] - original.y_m[old]) < 1.0


@pytest.mark.parametrize("verb", [["import", GOOD], ["generate", "--seed", "3"]])
def test_a_bad_id_is_refused_and_nothing_is_written(refused, home, verb):
    assert "lower-case letters" in refused("tracks", *verb, "--id=../x")
    assert "belongs to a track of the package" in refused("tracks", *verb, "--id=train-007")
    assert not home.exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ":1: the file is empty"),
        (circle().replace("4.0,4.0", "0,4.0", 1).encode(), ":1:"),
        (circle(radius_m=20.0, width_m=50.0).encode(), "tighter"),
    ],
)
def test_a_broken_file_is_refused_by_file_and_line(refused, home, tmp_path, content, words):
    path = tmp_path / "broken.csv"
    path.write_bytes(content)
    line = refused("tracks", "import", path, "--id", "mine")
    assert words in line
    assert "broken.csv" in line
    assert "there is no such file" in refused("tracks", "import", tmp_path / "none.csv", "--id", "mine")
    assert "a track is a file, this is a folder" in refused("tracks", "import", tmp_path, "--id", "mine")
    assert not home.exists()


def test_bad_options_are_refused(refused, home):
    command = ("tracks", "import", GOOD, "--id", "mine")
    assert "--width must be from 3 to 100 m, got 0" in refused(*command, "--width", 0)
    assert "'--width'" in refused(*command, "--width", "wide")
    assert "--start must be from 0 to the lap's" in refused(*command, "--start", "1e9")
    assert not home.exists()


# --- generate ---


def test_a_seed_gives_the_same_track_every_time(hotlap, home):
    answer = hotlap("tracks", "generate", "--seed", 12, "--id", "one")
    assert "hotlap tracks show one --png one.png" in answer.out
    figures = hotlap("tracks", "generate", "--seed", 12, "--id", "two", "--json").figures
    assert set(figures) == {"id", "length_m", "file"}
    one, two = (read_centreline(path) for path in (home / "tracks" / "one.csv", Path(figures["file"])))
    assert (one.x_m == two.x_m).all()
    assert 600.0 < length_m(one) < 4000.0


def test_a_circuit_is_generated_by_its_own_generator(hotlap):
    figures = hotlap("tracks", "generate", "--seed", 2, "--id", "large", "--circuit", "--json").figures
    saved, expected = read_centreline(Path(figures["file"])), generate_circuit(2)
    assert (saved.x_m == expected.x_m).all()
    assert (saved.width_left_m == expected.width_left_m).all()
    assert figures["length_m"] == pytest.approx(3649.5, abs=0.1)


def test_what_cannot_be_generated_or_written_is_refused(refused, tmp_path, monkeypatch):
    assert "it must be 0 or more" in refused("tracks", "generate", "--seed", "-1", "--id", "x")
    assert "Missing option '--seed'" in refused("tracks", "generate", "--id", "x")
    assert "Missing option '--id'" in refused("tracks", "generate", "--seed", "1")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HOTLAP_HOME", str(tmp_path / "file"))
    line = refused("tracks", "generate", "--seed", 1, "--id", "mine")
    assert "cannot be written" in line
    assert "Set HOTLAP_HOME to a writable folder" in line


def test_a_broken_track_of_the_users_affects_no_other(hotlap, refused, home):
    (home / "tracks" / "folder.csv").mkdir(parents=True)
    for name in ("broken", "track-01", "UPPER"):
        (home / "tracks" / f"{name}.csv").write_text("nonsense")
    ids = [row["id"] for row in hotlap("tracks", "list", "--json").figures["tracks"]]
    assert ids[-1] == "broken"
    assert ids.count("track-01") == 1
    assert len(ids) == 129
    assert "broken.csv:1" in refused("drive", "casual", "--track", "broken")
    assert hotlap("tracks", "show", "track-01").code == 0


def test_a_map_is_imported_with_its_attribution_and_driven(hotlap, tmp_path):
    (tmp_path / "ring.osm").write_text(osm_text(), encoding="utf-8")
    answer = hotlap("tracks", "import", tmp_path / "ring.osm", "--id", "testring", "--json")
    assert answer.figures["length_m"] == pytest.approx(LENGTH_M, rel=3e-3)
    text = Path(answer.figures["file"]).read_text(encoding="utf-8")
    assert (
        "# imported from ring.osm\n# © OpenStreetMap contributors, Open Database License 1.0 (way 71, way 72)" in text
    )
    laps = evaluate(make_driver("casual"), "testring", episodes=1)
    assert (laps.completion_rate, laps.clean_lap_rate) == (1.0, 1.0)
