"""The track of a driver, and a word where its road is another one now."""

from types import SimpleNamespace

import pytest

from hotlap.cli.driver_lookup import own_road, own_track, say_if_other_road
from hotlap.tracks.digest import track_digest
from hotlap.tracks.registry import load_track


def model(track, digest=None):
    return SimpleNamespace(path="model.zip", card=SimpleNamespace(track=track, track_digest=digest))


def test_a_model_has_its_own_track_and_a_built_in_driver_the_default():
    assert own_track(model("track-03")) == own_road(model("track-03")) == "track-03"
    assert own_track(None) == own_track(model(None)) == own_road(None) == "track-01"


def test_a_model_of_generated_roads_has_one_of_them():
    assert own_track(model("generated")) == "generated"
    assert load_track(own_road(model("generated"))).track_id == own_road(model("generated")) != "generated"


@pytest.mark.parametrize("track", ["track-01", "track-02"])
def test_another_road_of_the_same_name_is_said_in_one_line(capsys, track):
    say_if_other_road(model("track-01", "of-before"), track)
    said = capsys.readouterr().err
    if track == "track-02":  # the user's choice
        assert said == ""
    else:
        digest = track_digest(load_track("track-01").nodes)
        assert said.startswith(
            "hotlap: model.zip: was trained on another road of the name 'track-01' (digest 'of-before'"
        )
        assert repr(digest) in said
        assert said.count("\n") == 1


def test_the_road_of_the_training_is_not_mentioned(capsys):
    digest = track_digest(load_track("track-01").nodes)
    for one in (None, model(None), model("track-01"), model("track-01", digest)):
        say_if_other_road(one, "track-01")
    assert capsys.readouterr().err == ""
