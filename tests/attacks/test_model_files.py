"""Hostile model files: nothing in them is executed, imported or connected to, and no other file is read.

What was tried: cards that name modules, URLs, paths and arguments of environments; archives zipped anew by other
programs, which are accepted; and 10,000 random mutations of real models, most with digests made right again.
"""

import io
import json
import os
import shutil
import socket
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from attacks.model_mutations import BOMBS, CANARY, resealed, unzip, zip_members
from hotlap.errors import ArchiveError
from hotlap.models.model_file import read_model
from hotlap.reports.model_laps import Baselines, ModelLaps
from hotlap.tracks.digest import track_digest
from hotlap.tracks.generation.generator import generate
from hotlap.tracks.registry import load_track, save_track
from reports.written_runs import write_run

SCRIPT = Path(__file__).with_name("mutated_models.py")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The current folder, importable, with a module that leaves a trace when it is imported."""
    (tmp_path / f"{CANARY}.py").write_text(
        f"import pathlib\npathlib.Path({str(tmp_path / 'ran')!r}).touch()\n"
        "import gymnasium\n"
        "gymnasium.register('Canary-v0', entry_point='gymnasium.envs.classic_control.cartpole:CartPoleEnv')\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop(CANARY, None)
    import gymnasium

    gymnasium.registry.pop("Canary-v0", None)


def forge_card(source: Path, target: Path, **changes: Any) -> Path:
    """A model with other fields in its card and right digests."""
    members = unzip(source.read_bytes())
    manifest = json.loads(members["manifest.json"])
    manifest["about"]["card"] |= changes
    target.write_bytes(zip_members(list(resealed(members, manifest).items())))
    return target


# --- ids and arguments in a card ---

MODULE_IDS = [
    f"{CANARY}:CartPole-v1", f"{CANARY}:Canary-v0", f"{CANARY}:hotlap/Racer-v0", f"os:{CANARY}:CartPole-v1",
    f"{CANARY}/x:CartPole-v1", f":{CANARY}:CartPole-v1",
]  # fmt: skip


@pytest.mark.parametrize("env_id", MODULE_IDS)
def test_a_module_in_a_card_is_not_imported(cartpole, place, refused, hotlap, env_id):
    model = forge_card(cartpole.path, place / "model.zip", environment=env_id)
    assert "would import a module" in refused("evaluate", model, "--episodes", 1)
    assert hotlap("export", model, "--format", "onnx", "--out", place / "out.onnx").code == 0
    assert hotlap("export", model, "--format", "sb3", "--out", place / "out").code == 0
    assert not (place / "ran").exists()
    assert CANARY not in sys.modules


def test_a_module_that_the_user_allows_is_imported_and_said(cartpole, place, hotlap):
    model = forge_card(cartpole.path, place / "model.zip", environment=f"{CANARY}:Canary-v0")
    answer = hotlap("evaluate", model, "--episodes", 1, "--allow-import", CANARY, "--json")
    assert answer.err.splitlines() == [f"hotlap: imported {CANARY}, as --allow-import says."]
    assert (answer.code, answer.figures["environment"]) == (0, "Canary-v0")
    assert (place / "ran").exists()


def test_allowing_one_module_does_not_allow_another(cartpole, place, hotlap):
    model = forge_card(cartpole.path, place / "model.zip", environment=f"{CANARY}:Canary-v0")
    answer = hotlap("evaluate", model, "--episodes", 1, "--allow-import", "json")
    assert (answer.code, answer.out) == (2, "")
    assert "would import a module" in answer.err.splitlines()[-1]
    assert not (place / "ran").exists()


def test_a_module_that_is_not_there_is_refused(cartpole, refused):
    assert "is not the name of a module" in refused("evaluate", cartpole.path, "--allow-import", "a b")
    assert "No module named 'nopackage'" in refused("evaluate", cartpole.path, "--allow-import", "nopackage")


ARGUMENTS = {
    "an unknown name": {"wheels": 3},
    "another id": {"id": f"{CANARY}:Canary-v0"},
    "a module as text": {"render_mode": f"{CANARY}:x"},
    "a path": {"render_mode": "/etc/passwd"},
    "a window": {"render_mode": "human"},
    "a URL": {"bridge_url": "ws://127.0.0.1:9"},
}


@pytest.mark.parametrize("env_args", ARGUMENTS.values(), ids=ARGUMENTS)
def test_arguments_in_a_card_that_are_unknown_or_not_harmless_are_refused(cartpole, place, refused, env_args):
    model = forge_card(cartpole.path, place / "model.zip", env_args=env_args)
    assert f"{model}: environment 'CartPole-v1'" in refused("evaluate", model, "--episodes", 1)


def test_arguments_that_the_environment_takes_are_used(cartpole, place, hotlap):
    model = forge_card(cartpole.path, place / "model.zip", env_args={"max_episode_steps": 2})
    assert hotlap("evaluate", model, "--episodes", 2, "--json").figures["mean_episode_length"] == 2.0


@pytest.mark.parametrize("env_id", ["\x1b[2J", "a\nb", "", "a b", "x" * 300, "\u202eCartPole-v1"])
def test_an_environment_that_is_no_id_is_refused_by_every_command(cartpole, place, refused, env_id):
    model = forge_card(cartpole.path, place / "model.zip", environment=env_id)
    for line in (refused("evaluate", model), refused("export", model, "--format", "onnx", "--out", place / "x.onnx")):
        assert "must be a Gymnasium id" in line
        assert line.isprintable()


# --- URLs and the bridge token ---


@pytest.fixture
def listener(monkeypatch):
    """A server that nobody may connect to, while a token for bridges is set."""
    monkeypatch.setenv("HOTLAP_BRIDGE_TOKEN", "secret-of-sixteen-characters")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        yield server
        with pytest.raises(TimeoutError):
            server.accept()


@pytest.mark.parametrize("subject", ["racer", "cartpole"])
def test_a_url_in_a_card_is_never_connected_to(request, subject, place, refused, listener):
    url = f"ws://127.0.0.1:{listener.getsockname()[1]}"
    source = request.getfixturevalue(subject).path
    model = forge_card(source, place / "model.zip", environment="hotlap/RemoteRacer-v0", env_args={"bridge_url": url})
    assert "env_args: a model of hotlap/Racer-v0 has none" in refused("evaluate", model, "--episodes", 1)
    assert "env_args" in refused("export", model, "--format", "onnx", "--out", place / "out.onnx")


def test_a_card_of_the_remote_racer_is_one_of_the_racer(racer, place, hotlap, listener, monkeypatch):
    monkeypatch.setenv("BRIDGE_PORT", str(listener.getsockname()[1]))
    model = forge_card(racer.path, place / "model.zip", environment="hotlap/RemoteRacer-v0")
    assert read_model(model).card == read_model(racer.path).card
    assert hotlap("evaluate", model, "--episodes", 1, "--json").figures["track"] == "track-01"


@pytest.mark.parametrize("track", ["../../secret", "/etc/passwd", "track-01.csv", "", "\x1b[2J"])
def test_a_track_in_a_card_is_looked_up_and_not_a_path(racer, place, hotlap, track):
    model = forge_card(racer.path, place / "model.zip", track=track)
    answer = hotlap("evaluate", model, "--episodes", 1)
    if track:  # an empty one means the default track
        assert answer.code == 2
        assert "is not known" in answer.err


# --- a road re-imported under an old id ---


def test_evaluate_says_that_the_road_is_another_one_than_in_training(racer, place, hotlap, monkeypatch):
    monkeypatch.setenv("HOTLAP_HOME", str(place / "home"))
    monkeypatch.setattr("hotlap.optimal.reference.find_or_solve_reference", lambda *_: None)  # it takes long
    own = read_model(racer.path).card.track_digest
    save_track("mine", generate(4), "test")
    model = forge_card(racer.path, place / "model.zip", track="mine", track_digest=own)
    answer = hotlap("evaluate", model, "--episodes", 1, "--json")
    assert answer.code == 0
    [line] = [line for line in answer.err.splitlines() if "another road" in line]
    assert own in line
    assert answer.figures["track_digest"] != own
    assert answer.figures["track_digest"] in line


def test_evaluate_does_not_complain_about_the_same_road_or_a_track_of_the_users_choice(racer, hotlap):
    for track in ("track-01", "track-02"):
        answer = hotlap("evaluate", racer.path, "--episodes", 1, "--track", track, "--json")
        assert "another road" not in answer.err
    assert hotlap("evaluate", racer.path, "--episodes", 1, "--json").figures["track_digest"] == (
        read_model(racer.path).card.track_digest
    )


@pytest.fixture
def reported(racer, place, hotlap, monkeypatch):
    """Reports on a run and on its model, which was trained on a road of this digest under the name of ours."""
    monkeypatch.setenv("HOTLAP_HOME", str(place / "home"))
    monkeypatch.setattr(
        "hotlap.reports.model_laps.drive_runs",
        lambda records, *_, **__: ([ModelLaps(record) for record in records], Baselines()),
    )
    save_track("mine", generate(4), "test")

    def report(digest):
        folder = write_run(place / "run", racer={"track": "mine"})
        model = forge_card(racer.path, folder.best, track="mine", track_digest=digest)
        answers = [hotlap("report", folder.path), hotlap("report", model, "--out", place / "out")]
        assert answers[0].code == 0
        assert "the optimal lap of 'mine' is not known" in answers[1].err
        return [[line for line in answer.err.splitlines() if "another road" in line] for answer in answers]

    return report


def test_report_says_that_the_road_is_another_one_than_in_training(reported):
    for [line] in reported("0123456789abcdef"):
        assert "run/ppo_seed1_best.zip: was trained on another road of the name 'mine'" in line
        assert "(digest '0123456789abcdef')" in line
        assert track_digest(load_track("mine").nodes) in line


def test_report_does_not_complain_about_the_same_road(reported):
    assert reported(track_digest(load_track("mine").nodes)) == [[], []]


# --- archives zipped anew ---


def rezip(data: bytes, *, reverse: bool = False, kind: int = zipfile.ZIP_STORED, streamed: bool = False) -> bytes:
    """The same members in another zip; a streamed one has its sizes after the data."""

    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return not streamed

        def tell(self) -> int:
            if streamed:
                raise OSError("not seekable")
            return super().tell()

    buffer = Pipe()
    with zipfile.ZipFile(buffer, "w", kind) as file:
        for name, payload in sorted(unzip(data).items(), reverse=reverse):
            file.writestr(zipfile.ZipInfo(name, (2026, 1, 2, 3, 4, 6)), payload, kind)
        file.comment = b"zipped by another program"
    return buffer.getvalue()


@pytest.mark.parametrize(
    "options",
    [{"reverse": True}, {"kind": zipfile.ZIP_DEFLATED}, {"streamed": True, "kind": zipfile.ZIP_DEFLATED}],
    ids=["another order", "deflated", "streamed"],
)
def test_a_model_zipped_anew_is_accepted(any_racer, place, options):
    path = place / "again.zip"
    path.write_bytes(rezip(any_racer.path.read_bytes(), **options))
    assert read_model(path).card == read_model(any_racer.path).card


@pytest.mark.skipif(shutil.which("zip") is None, reason="needs the program zip")
@pytest.mark.parametrize("options", [["-X"], ["-0"], ["-9"]], ids=" ".join)
def test_a_model_zipped_anew_by_info_zip_is_accepted(any_racer, place, options):
    with zipfile.ZipFile(any_racer.path) as file:
        file.extractall(place / "content")
    names = sorted(path.name for path in (place / "content").iterdir())
    subprocess.run(["zip", "-q", *options, "../again.zip", *names], cwd=place / "content", check=True)
    assert read_model(place / "again.zip").card == read_model(any_racer.path).card


def test_zeros_that_inflate_to_more_than_weights_do_are_refused(cartpole, place):
    members = resealed({**unzip(cartpole.path.read_bytes()), "replay_buffer.safetensors": bytes(33 << 20)})
    path = place / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, payload in members.items():
            file.writestr(name, payload)
    with pytest.raises(ArchiveError, match="more than weights compress"):
        read_model(path)


# --- random mutations of real models ---


def attack(folder: Path, models: list[Path], seed: int, count: int, num_bombs: int = len(BOMBS)) -> dict[str, Any]:
    """Use `count` mutations of these models in a process of its own."""
    for index, model in enumerate(models):
        shutil.copy(model, folder / f"{index}.zip")
    names = [str(folder / f"{index}.zip") for index in range(len(models))]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path]), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", str(SCRIPT), str(seed), str(count), str(num_bombs), *names]
    answer = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environ, check=True)
    report: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return report


def assert_harmless(report: dict[str, Any], folder: Path, count: int) -> None:
    assert report["faults"] == []  # each mutation is refused in one printable line, or used
    assert report["seen"] == []  # no file but the model and installed code, no connection, no process, no unpickling
    assert not report["is_canary_imported"]
    assert not (folder / "ran").exists()
    assert report["slowest_s"] < 1.0, report["slowest"]
    assert report["peak_more_bytes"] < 200 << 20
    assert sum(report["outcomes"].values()) == count
    # The mutations are neither all refused nor all without effect.
    for kind in ("headers", "tensors", "card", "ids", "sizes"):
        assert report["outcomes"][f"{kind} refused"] > 0
        assert report["outcomes"][f"{kind} used"] > 0


@pytest.mark.skipif(sys.platform == "win32", reason="needs the module resource")
@pytest.mark.parametrize(
    ("seed", "count"), [(1, 500), pytest.param(2, 10_000, marks=pytest.mark.slow)], ids=["500", "10000"]
)
@pytest.mark.timeout(600)
def test_no_mutation_of_a_model_executes_reads_elsewhere_hangs_or_fills_memory(cartpole, racer, place, seed, count):
    assert_harmless(attack(place, [cartpole.path, racer.path], seed, count), place, count)


@pytest.mark.skipif(sys.platform == "win32", reason="needs the module resource")
@pytest.mark.timeout(120)
def test_the_watch_notices_what_it_looks_for(cartpole, place):
    """Without the check of ids and arguments, the same mutations import the canary."""
    weakened = place / "sitecustomize.py"
    weakened.write_text(
        "import hotlap.envs.gym_registry as subject\nsubject.check_env_id = lambda env_id, allowed=(): env_id\n"
    )
    report = attack(place, [cartpole.path], 1, 82, num_bombs=0)
    assert report["is_canary_imported"]
    assert any(CANARY in line for line in report["seen"])
    assert (place / "ran").exists()
