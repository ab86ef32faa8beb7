"""`hotlap push`: the folder for the hub, and its upload where there is a token."""

import json
import re
import sys
from types import SimpleNamespace

import pytest

from hotlap.models.model_file import read_model
from hotlap.reports.hub_card import plain

pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture(scope="module")
def pushed(compiled, tmp_path_factory):
    """The folder of the champion, with a short film."""
    import numpy as np

    from hotlap.envs import race_video
    from hotlap.reports import hub_folder
    from hotlap.reports.hub_folder import HubTask, write_hub_folder
    from hotlap.runs.find_driver import find_driver_model

    out = tmp_path_factory.mktemp("hub") / "champion"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hub_folder, "draw_frame", lambda *_: np.zeros((60, 60, 3), np.uint8))
        patch.setattr(race_video, "MAX_S", 1.0)
        task = HubTask("champion-track-01", episodes=5, video="gif")
        files = write_hub_folder(find_driver_model("champion"), out, task, pytest.fail)
    assert [file.name for file in files] == ["README.md", "model.zip", "evaluation.json", "replay.gif"]
    return out


def test_the_card_has_what_the_hub_reads(pushed):
    yaml = pytest.importorskip("yaml", reason="PyYAML is missing: pip install pyyaml")
    _, front, text = (pushed / "README.md").read_text("utf-8").split("---\n", 2)
    about = yaml.safe_load(front)
    assert about["library_name"] == "hotlap"
    assert {"reinforcement-learning", "gymnasium"} <= set(about["tags"])
    [model] = about["model-index"]
    [result] = model["results"]
    assert result["task"]["type"] == "reinforcement-learning"
    assert result["dataset"]["type"] == "hotlap/Racer-v0"
    figures = {metric["type"]: metric["value"] for metric in result["metrics"]}
    evaluated = json.loads((pushed / "evaluation.json").read_text())
    assert figures["gap_to_optimal"] == round(evaluated["gap_to_optimal"], 6)
    assert 0.005 < figures["gap_to_optimal"] < 0.02
    assert f"| gap to the optimal lap | {100.0 * evaluated['gap_to_optimal']:.2f} % |" in text
    assert "![a lap](replay.gif)" in text
    assert re.search(r"SHA-256 `[0-9a-f]{64}`", text)


def test_the_pushed_model_drives_and_holds_the_same_weights(pushed, hotlap):
    from hotlap.runs.find_driver import find_driver_model

    here, there = read_model(pushed / "model.zip"), find_driver_model("champion")
    assert here.card == there.card
    assert {name: one.tobytes() for name, one in here.weights.items()} == {
        name: one.tobytes() for name, one in there.weights.items()
    }
    figures = hotlap("evaluate", pushed / "model.zip", "--episodes", 5, "--json").figures
    evaluated = json.loads((pushed / "evaluation.json").read_text())
    for name in ("median_lap_time_sec", "gap_to_optimal", "standing_lap_time_sec", "line_lap_time_sec"):
        assert figures[name] == evaluated[name]


def test_a_run_of_another_environment_has_returns_and_no_video(hotlap, unevaluated, monkeypatch):
    from cli.trained_runs import recipe

    assert hotlap("train", "--recipe", recipe(env="CartPole-v1"), "-q").code == 0
    found = {"mean_reward": 12.0, "std_reward": 1.0, "mean_episode_length": 12.0, "environment": "CartPole-v1"}
    monkeypatch.setattr("hotlap.reports.hub_folder.evaluate_model", lambda *_: found)
    answer = hotlap("push", "ppo_seed42", "--json")
    assert answer.code == 0, answer.err
    assert answer.err == "hotlap: no video: CartPole-v1 is not the racer.\n"
    assert answer.figures["files"] == ["README.md", "model.zip", "config.toml", "evaluation.json"]
    assert answer.figures["address"] is None


@pytest.fixture
def written(monkeypatch):
    """Pushes without an evaluation; returns the files that were asked to be uploaded."""
    monkeypatch.setattr("hotlap.reports.hub_folder.write_hub_folder", lambda *_: [])


class Hub:
    """A stand-in for the hub's library."""

    def __init__(self, token="secret", error=None):
        self.calls, self._token, self._error = [], token, error

    def get_token(self):
        return self._token

    def HfApi(self):  # noqa: N802 (the library's name)
        return SimpleNamespace(create_repo=self._note, upload_folder=self._note)

    def _note(self, *arguments, **options):
        if self._error:
            raise self._error
        self.calls.append((arguments, options))


def test_it_is_uploaded_where_there_is_a_token(hotlap, written, monkeypatch):
    hub = Hub()
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    answer = hotlap("push", "champion", "--repo", "ada/racer", "--private", "--out", "folder")
    assert answer.out == "uploaded: https://huggingface.co/ada/racer\n"
    [create, upload] = hub.calls
    assert create == (("ada/racer",), {"private": True, "exist_ok": True})
    assert (upload[1]["repo_id"], upload[1]["folder_path"]) == ("ada/racer", "folder")
    assert "README.md" in upload[1]["allow_patterns"]


def test_without_token_network_or_library_it_is_one_line(refused, written, monkeypatch):
    arguments = ("push", "champion", "--repo", "ada/racer")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert refused(*arguments).endswith('Install it: pip install "hotlap[hub]".')
    monkeypatch.setitem(sys.modules, "huggingface_hub", Hub(token=None))
    assert "no token of the hub was found" in refused(*arguments)
    monkeypatch.setitem(sys.modules, "huggingface_hub", Hub(error=ConnectionError("no\nnetwork")))
    assert "'ada/racer': cannot be uploaded (no network)" in refused(*arguments)


def test_bad_input_is_refused_before_driving(refused, monkeypatch):
    monkeypatch.setattr("hotlap.reports.hub_folder.write_hub_folder", lambda *_: pytest.fail("it was written"))
    assert "--to 'moon': only hub is known" in refused("push", "champion", "--to", "moon")
    assert "write OWNER/NAME" in refused("push", "champion", "--repo", "../x")
    assert "has no model" in refused("push", "casual")
    assert "--video must be mp4, gif or none" in refused("push", "champion", "--video", "avi")
    assert "is not known" in refused("push", "nobody")
    assert "only a champion has a track" in refused("push", "generalist", "--track", "track-01")


def test_text_of_a_strangers_model_cannot_leave_its_place():
    assert plain('x"\n- y: <script>|`') == "x??- y: ?script???"
    assert len(plain("x" * 1000)) == 120
