"""The drivers that come with the package drive as their cards say, to the last digit."""

import hashlib
import json

import pytest

from hotlap.config import build, read_mapping, snake_case
from hotlap.errors import ConfigError, DriverError
from hotlap.evaluation.evaluate import evaluate
from hotlap.models import shipped_models
from hotlap.models.model_file import read_model
from hotlap.models.shipped_models import (
    CHAMPION_STARTS,
    FIRST_STARTS,
    GENERALIST_STARTS,
    SHIPPED_FOLDER,
    START_SEED,
    champion_tracks,
    find_shipped,
    shipped_path,
    unseen_tracks,
)
from hotlap.optimal.reference import find_reference
from hotlap.runs.find_driver import find_driver
from hotlap.runs.run_config import RunConfig, digest_of, load_config
from hotlap.sim.version import PHYSICS_VERSION
from hotlap.tracks.registry import load_track

BUILT_IN = ["track-01", "track-02", "track-03"]


def card_of(name: str) -> dict:
    return json.loads((SHIPPED_FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def figures(driver: str, track: str, episodes: int) -> dict:
    found = evaluate(find_driver(driver, track), track, episodes=episodes, start="random", seed=START_SEED)
    return found.against(find_reference(load_track(track)).lap_time_s).as_dict()


def test_every_built_in_track_has_a_champion():
    assert champion_tracks() == BUILT_IN


def assert_drives_as_told(track: str, told: dict, num_starts: int) -> None:
    found = figures("champion", track, num_starts)
    names = told.keys() - {"starts", "first"}
    assert len(names) == 5
    assert told["starts"] == num_starts
    assert {name: found[name] for name in names} == {name: told[name] for name in names}


@pytest.mark.timeout(180)
@pytest.mark.parametrize("track", BUILT_IN)
def test_a_champion_drives_as_its_card_says_from_the_first_starts(track):
    assert_drives_as_told(track, card_of(track)["figures"]["first"], FIRST_STARTS)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("track", BUILT_IN)
def test_a_champion_drives_as_its_card_says_from_all_starts(track):
    assert_drives_as_told(track, card_of(track)["figures"], CHAMPION_STARTS)


def assert_generalist_drives_as_told(tracks: list[str]) -> None:
    told = card_of("generalist")["figures"]
    assert list(told["tracks"]) == unseen_tracks()
    for track in tracks:
        found = figures("generalist", track, GENERALIST_STARTS)
        assert {name: found[name] for name in told["tracks"][track]} == told["tracks"][track], track


@pytest.mark.timeout(180)
def test_the_generalist_drives_some_unseen_tracks_as_its_card_says():
    assert len(unseen_tracks()) == 28
    assert_generalist_drives_as_told([*unseen_tracks()[:20:10], "track-02"])


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_generalist_drives_every_unseen_track_as_its_card_says():
    assert_generalist_drives_as_told(unseen_tracks())


@pytest.mark.parametrize("name", [*BUILT_IN, "generalist"])
def test_a_card_tells_how_the_model_was_made(name):
    card, model = card_of(name), read_model(SHIPPED_FOLDER / f"{name}.zip")
    assert card["name"] == name
    assert card["physics"] == model.card.physics == PHYSICS_VERSION
    assert (card["seed"], card["decisions"]) == (model.card.seed, model.card.step)
    assert all(len(card[key]) > 20 for key in ("method", "hardware", "limits"))
    page = (SHIPPED_FOLDER / f"{name}.md").read_text(encoding="utf-8")
    assert all(card[key] in page for key in ("method", "hardware", "limits"))
    assert (SHIPPED_FOLDER / f"{name}.zip").stat().st_size < 1_000_000


@pytest.mark.parametrize("name", [*BUILT_IN, "generalist"])
def test_a_card_names_the_files_that_it_was_trained_with(name):
    """The digest in the model proves that the last file is the configuration of the training it is from."""
    card, model = card_of(name), read_model(SHIPPED_FOLDER / f"{name}.zip")
    page = (SHIPPED_FOLDER / f"{name}.md").read_text(encoding="utf-8")
    names = [recipe["file"] for recipe in card["recipes"]]
    assert sorted(names) == sorted(path.name for path in SHIPPED_FOLDER.glob(f"{name}*.toml"))
    assert names[-1] == f"{name}.toml"
    for recipe in card["recipes"]:
        path = SHIPPED_FOLDER / recipe["file"]
        assert recipe["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
        assert f"`{recipe['file']}` (SHA-256 `{recipe['sha256']}`)" in page
        config = read_mapping(path)
        assert (tuple(config["policy"]["net_arch"]), config["seed"]) == (model.card.policy.net_arch, model.card.seed)
        racer = config["racer"]
        assert (racer["lap_fourier"], racer["observation"]) == (model.card.lap_fourier, model.card.observation)
        assert name in (racer["track"], "generalist")
        # It is a record with the names of its time. Today's reader says what to write, and else takes it.
        with pytest.raises(ConfigError, match=r"unknown key 'config'\. Write its keys in snake_case into"):
            load_config(path)
        renamed = {**config, "racer": {key: value for key, value in racer.items() if key != "config"}}
        assert build(RunConfig, renamed, name, snake_case).seed == model.card.seed
    assert card["config_digest"] == model.card.config_digest
    assert digest_of(read_mapping(SHIPPED_FOLDER / names[-1])) == model.card.config_digest
    assert len(card["reproduction"]) > 20
    assert card["reproduction"] in page


def test_a_track_without_a_champion_is_told_which_have_one():
    with pytest.raises(DriverError, match="champion: none comes with the package for 'train-000', only for track"):
        find_shipped("champion", "train-000")


@pytest.mark.parametrize("track", ["generalist", "../shipped/track-01", "", "track-01.zip"])
def test_only_a_built_in_tracks_id_finds_a_champion(track):
    assert shipped_path("champion", track) is None


def test_without_files_there_is_no_driver(tmp_path, monkeypatch):
    monkeypatch.setattr(shipped_models, "SHIPPED_FOLDER", tmp_path)
    for name in ("champion", "generalist"):
        with pytest.raises(DriverError, match=f"driver {name}: none comes with the package"):
            find_shipped(name, "track-01")
