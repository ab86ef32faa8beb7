"""`hotlap race`: classification, table, picture, JSON and bad input."""

import pytest
from PIL import Image

KEYS = {"driver", "cars", "wins", "win_rate", "mean_position", "elo", "finish_rate", "contacts_per_km"}
KEYS |= {"at_fault_contacts_per_km", "overtakes_per_race", "clean_overtake_rate", "best_lap_time_sec"}


def test_one_race_prints_its_classification_and_draws_it(hotlap, tmp_path):
    png = tmp_path / "new" / "race.png"
    answer = hotlap("race", "champion*2", "champion@0.6", "--laps", 1, "--seed", 3, "--png", png)
    assert answer.code == 0, answer.err
    lines = answer.out.splitlines()
    assert lines[0] == "track-01, 1 lap, 3 cars"
    assert [line.split()[0] for line in lines[2:5]] == ["1", "2", "3"]
    assert lines[5] == f"picture: {png}"
    with Image.open(png) as image:
        assert min(image.size) > 400


def test_several_races_print_a_table_and_json_has_the_keys_of_the_contract(hotlap):
    arguments = ("race", "champion", "champion@0.6", "--laps", 1, "--races", 2, "--start", "rolling")
    answer = hotlap(*arguments)
    assert answer.out.startswith("track-01, 2 races of 1 lap\n")
    assert "champion ahead of champion@0.6: 100 %" in answer.out
    figures = hotlap(*arguments, "--json").figures
    assert set(figures) == {"track", "laps", "races", "drivers", "pairs"}
    assert (figures["track"], figures["laps"], figures["races"]) == ("track-01", 1, 2)
    assert all(set(row) >= KEYS for row in figures["drivers"])
    assert figures["pairs"][0] == {"driver": "champion", "against": "champion@0.6", "ahead_rate": 1.0}


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("champion*33",), "from 1 to 32"),
        (("champion*20", "casual*13"), "from 1 to 32 cars, got 33"),
        (("nobody",), "'nobody' is not known"),
        (("champion", "--races", 0), "--races must be from 1 to"),
        (("champion", "--laps", 0), "laps must be from 1 to 1000, got 0"),
        (("champion", "--start", "flying"), "start"),
        (("champion", "--track", "nowhere"), "nowhere"),
        (("champion", "--races", 2, "--png", "x.png"), "--png: it shows one race"),
    ],
)
def test_bad_input_gets_one_line_and_exit_code_2(hotlap, arguments, fault):
    answer = hotlap("race", *arguments)
    assert answer.code == 2
    assert fault in answer.err
    assert "Traceback" not in answer.err
    assert len(answer.err.strip().splitlines()) == 1
