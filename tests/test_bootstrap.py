"""`tools/bootstrap.py` without a network: what it decides, and that a second call installs nothing."""

import importlib.util
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HERE = f"{sys.implementation.name} {sys.version_info[0]}.{sys.version_info[1]}"


@pytest.fixture
def bootstrap(tmp_path, monkeypatch):
    """A private copy of the module whose project is an empty folder."""
    spec = importlib.util.spec_from_file_location("bootstrap_under_test", ROOT / "tools" / "bootstrap.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in ("pyproject.toml", "constraints.txt", "bootstrap.py"):
        (tmp_path / name).write_text("numpy==1.0\ntorch==2.13.0\n", encoding="utf-8")
    venv = tmp_path / ".venv"
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "VENV", venv)
    monkeypatch.setattr(module, "STAMP", venv / "bootstrap-stamp.json")
    monkeypatch.setattr(module, "LOG", venv / "bootstrap.log")
    monkeypatch.setattr(module, "CONSTRAINTS", tmp_path / "constraints.txt")
    monkeypatch.setattr(
        module, "INPUTS", tuple(tmp_path / n for n in ("pyproject.toml", "constraints.txt", "bootstrap.py"))
    )
    monkeypatch.setattr(module, "ask_python", lambda code: HERE)
    return module


@pytest.fixture
def pip_calls(bootstrap, monkeypatch):
    """Pip and the making of `.venv` replaced by notes of what they were asked for."""
    calls = []
    monkeypatch.setattr(bootstrap, "pip_install", lambda *arguments: calls.append(" ".join(arguments)))
    monkeypatch.setattr(bootstrap, "make_venv", lambda: (calls.append("venv"), bootstrap.VENV.mkdir()))
    return calls


@pytest.fixture
def commands(bootstrap, monkeypatch):
    """The verbs' commands, noted instead of run."""
    noted = []
    monkeypatch.setattr(bootstrap, "run", lambda command: noted.append(command) or 0)
    return noted


def fail_pip(bootstrap, monkeypatch, when, words="ERROR: No matching distribution found"):
    """Let pip fail where `when(arguments)` says so; returns the notes of all calls."""
    calls = []

    def pip_install(*arguments):
        calls.append(" ".join(arguments))
        if when(calls[-1]):
            raise bootstrap.PipError(words)

    monkeypatch.setattr(bootstrap, "pip_install", pip_install)
    monkeypatch.setattr(bootstrap, "make_venv", lambda: bootstrap.VENV.mkdir())
    return calls


def asks_for_box2d(call):
    return "gymnasium[box2d]" in call or "box2d-py pygame-ce" in call


# --- refusing politely ---


@pytest.mark.parametrize("version", [(3, 10), (3, 11), (3, 12), (3, 13)])
def test_supported_pythons_pass(bootstrap, version):
    assert bootstrap.version_complaint(version, "test") is None


@pytest.mark.parametrize("version", [(2, 7), (3, 9), (3, 14), (4, 0)])
def test_other_pythons_are_refused_in_one_line(bootstrap, monkeypatch, version):
    monkeypatch.setattr(bootstrap.shutil, "which", lambda name: None)
    complaint = bootstrap.version_complaint(version, "test")
    assert complaint.startswith("Hotlap needs Python 3.10 to 3.13; this is {}.{}.".format(*version))
    assert "\n" not in complaint


def test_a_fitting_python_on_the_path_is_named(bootstrap, monkeypatch):
    monkeypatch.setattr(bootstrap.shutil, "which", lambda name: name if name == "python3.12" else None)
    assert "make test PYTHON=python3.12" in bootstrap.version_complaint((3, 9), "test")


def test_main_refuses_an_old_python_with_status_2(bootstrap, monkeypatch, capsys, pip_calls):
    monkeypatch.setattr(bootstrap.sys, "version_info", (3, 9, 18))
    assert bootstrap.main(["test"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert pip_calls == []


def test_the_bounds_are_those_of_the_project(bootstrap):
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'requires-python = ">={}.{}"'.format(*bootstrap.OLDEST) in text
    assert "Python :: {}.{}".format(*bootstrap.NEWEST) in text


def test_a_python_without_ensurepip_is_told_what_to_install(bootstrap, monkeypatch, capsys):
    real = importlib.util.find_spec
    monkeypatch.setattr(bootstrap.importlib.util, "find_spec", lambda name: None if name == "ensurepip" else real(name))
    assert bootstrap.main(["test"]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert "no ensurepip module" in last
    assert f"apt install python{sys.version_info[0]}.{sys.version_info[1]}-venv" in last


def test_an_unknown_verb_names_the_verbs(bootstrap, capsys):
    assert bootstrap.main(["fly"]) == 2
    assert "no verb 'fly'; the verbs are train, test, check" in capsys.readouterr().err


# --- the stamp ---


def test_the_first_call_installs_torch_before_the_project(bootstrap, pip_calls, commands):
    assert bootstrap.main(["test", "-k", "laps"]) == 0
    assert pip_calls[0] == "venv"
    assert pip_calls[1].endswith("torch==2.13.0")
    assert pip_calls[2].endswith("-e .[dev]")
    assert commands == [["-m", "pytest", "-k", "laps"]]


def test_the_second_call_does_not_touch_pip(bootstrap, pip_calls, commands, monkeypatch):
    bootstrap.main(["setup"])
    pip_calls.clear()

    def refuse(*_, **__):
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr(subprocess, "run", refuse)
    assert bootstrap.main(["test"]) == 0
    assert pip_calls == []
    assert len(commands) == 1


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt", "bootstrap.py"])
def test_a_changed_input_installs_again(bootstrap, pip_calls, name):
    bootstrap.main(["setup"])
    pip_calls.clear()
    with (bootstrap.ROOT / name).open("a", encoding="utf-8") as file:
        file.write("# more\n")
    bootstrap.main(["setup"])
    assert "venv" not in pip_calls
    assert pip_calls[-1].endswith("-e .[dev]")


def test_an_interrupted_installation_leaves_no_stamp(bootstrap, pip_calls, monkeypatch):
    bootstrap.main(["setup"])
    (bootstrap.ROOT / "constraints.txt").write_text("torch==2.14.0\n", encoding="utf-8")

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(bootstrap, "install_project", interrupt)
    assert bootstrap.main(["test"]) == 130
    assert not bootstrap.STAMP.exists()


@pytest.mark.parametrize("content", ["", "{", "[]", "null"])
def test_a_damaged_stamp_counts_as_none(bootstrap, content):
    bootstrap.VENV.mkdir()
    bootstrap.STAMP.write_text(content, encoding="utf-8")
    assert bootstrap.read_stamp() == {}


# --- environments that will not do ---


@pytest.mark.parametrize(
    ("answer", "words"),
    [(None, "has no working interpreter"), ("cpython 3.8", "is of cpython 3.8, not")],
)
def test_a_broken_or_foreign_environment_is_made_anew(bootstrap, pip_calls, monkeypatch, capsys, answer, words):
    bootstrap.VENV.mkdir()
    (bootstrap.VENV / "left-over").touch()
    monkeypatch.setattr(bootstrap, "ask_python", lambda code: answer)
    monkeypatch.setattr(bootstrap, "has_box2d", lambda: True)
    assert bootstrap.main(["setup"]) == 0
    assert pip_calls[0] == "venv"
    assert not (bootstrap.VENV / "left-over").exists()
    assert words in capsys.readouterr().err


def test_an_environment_of_a_moved_checkout_is_made_anew(bootstrap, pip_calls, capsys):
    bootstrap.main(["setup"])
    stamp = json.loads(bootstrap.STAMP.read_text(encoding="utf-8"))
    bootstrap.STAMP.write_text(json.dumps({**stamp, "root": "elsewhere"}), encoding="utf-8")
    pip_calls.clear()
    assert bootstrap.main(["setup"]) == 0
    assert pip_calls[0] == "venv"
    assert "was made for another folder (elsewhere)" in capsys.readouterr().err


# --- pip's failures ---


def test_no_network_is_one_clear_line_and_status_2(bootstrap, monkeypatch, capsys):
    words = "WARNING: Retrying after connection broken by 'NewConnectionError'\nERROR: No matching distribution found"
    fail_pip(bootstrap, monkeypatch, lambda call: True, words)
    assert bootstrap.main(["test"]) == 2
    err = capsys.readouterr().err
    last = err.splitlines()[-1]
    assert "no network" in last
    assert "NewConnectionError" not in err
    assert str(bootstrap.LOG) in last
    assert not bootstrap.STAMP.exists()


def test_a_failing_project_shows_the_end_of_the_log(bootstrap, monkeypatch, capsys):
    fail_pip(bootstrap, monkeypatch, lambda call: ".[dev]" in call, "opening\n" + "x\n" * 50 + "the reason")
    assert bootstrap.main(["test"]) == 2
    err = capsys.readouterr().err
    assert "the reason" in err
    assert "opening" not in err
    assert str(bootstrap.LOG) in err.splitlines()[-1]


def test_a_torch_that_cannot_be_had_falls_back_to_the_range(bootstrap, monkeypatch, capsys):
    calls = fail_pip(bootstrap, monkeypatch, lambda call: "torch==" in call)
    assert bootstrap.main(["setup"]) == 0
    loose = Path(calls[1].split()[1])
    assert loose.read_text(encoding="utf-8") == "numpy==1.0\n"
    assert "torch==2.13.0 is not to be had" in capsys.readouterr().err


def test_pins_that_cannot_be_had_fall_back_to_the_bounds(bootstrap, monkeypatch, capsys):
    calls = fail_pip(bootstrap, monkeypatch, lambda call: "-c" in call and ".[dev]" in call)
    assert bootstrap.main(["setup"]) == 0
    assert calls[-1] == "-e .[dev]"
    assert "not to be had" in capsys.readouterr().err


def test_box2d_is_built_where_there_is_no_wheel_and_may_fail(bootstrap, monkeypatch, capsys, commands):
    monkeypatch.setattr(bootstrap, "has_box2d", lambda: False)
    calls = fail_pip(bootstrap, monkeypatch, asks_for_box2d)
    assert bootstrap.main(["test"]) == 0
    assert any("swig setuptools wheel" in call for call in calls)
    assert "--no-build-isolation box2d-py" in calls[-1]
    assert "LunarLander tests will use EnvPool or be skipped" in capsys.readouterr().err
    assert len(commands) == 1


def test_setup_tries_a_missing_box2d_again_and_test_does_not(bootstrap, monkeypatch, commands):
    monkeypatch.setattr(bootstrap, "has_box2d", lambda: False)
    calls = fail_pip(bootstrap, monkeypatch, asks_for_box2d)
    bootstrap.main(["setup"])
    calls.clear()
    bootstrap.main(["test"])
    assert calls == []
    bootstrap.main(["setup"])
    assert "gymnasium[box2d]" in calls[0]


def test_peers_are_installed_once_and_may_fail(bootstrap, monkeypatch, capsys, commands):
    declared = "\n".join(
        [
            "numpy>=1.26",
            'ruff; extra == "dev"',
            'highway-env>=1.9; extra == "peers"',
            'envpool; platform_system == "Linux" and extra == "peers"',
        ]
    )
    monkeypatch.setattr(bootstrap, "ask_python", lambda code: declared if "metadata" in code else HERE)
    assert bootstrap.peer_requirements() == ["highway-env>=1.9", 'envpool; platform_system == "Linux"']
    calls = fail_pip(bootstrap, monkeypatch, lambda call: "highway" in call)
    assert bootstrap.main(["bench"]) == 0
    assert "highway-env>=1.9 is not to be had here" in capsys.readouterr().err
    assert "envpool" in calls[-1]
    calls.clear()
    bootstrap.main(["bench"])
    assert calls == []


def test_pip_keeps_its_words_in_the_log(bootstrap, monkeypatch, capsys):
    class Process:
        stdout = io.StringIO("Collecting x\nInstalling collected packages: a, b\n")

        def wait(self):
            return 1

    bootstrap.VENV.mkdir()
    monkeypatch.setattr(bootstrap.subprocess, "Popen", lambda *_, **__: Process())
    with pytest.raises(bootstrap.PipError, match="Collecting x"):
        bootstrap.pip_install("x")
    assert "Collecting x" in bootstrap.LOG.read_text(encoding="utf-8")
    assert capsys.readouterr().err == "[bootstrap]   unpacking 2 packages\n"


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("  Downloading numba-0.68.1-cp311-x86_64.whl (3.8 MB)", "downloading numba-0.68.1-cp311-x86_64.whl (3.8 MB)"),
        ("Downloading https://host/a/b-1.tar.gz (1.2 GB)", "downloading b-1.tar.gz (1.2 GB)"),
        ("Downloading small-1-py3-none-any.whl (12 kB)", None),
        ("  Building wheel for box2d-py (setup.py): started", "building box2d-py"),
        ("  Building wheel for box2d-py (setup.py): finished with status 'done'", None),
        ("Installing collected packages: a", "unpacking 1 package"),
        ("Requirement already satisfied: a", None),
    ],
)
def test_progress_words(bootstrap, line, word):
    assert bootstrap.progress_word(line) == word


# --- verbs ---


def test_check_stops_at_the_first_failure(bootstrap, pip_calls, monkeypatch):
    noted = []
    monkeypatch.setattr(
        bootstrap, "run", lambda command: noted.append(command[1]) or (3 if command[1] == "mypy" else 0)
    )
    assert bootstrap.main(["check"]) == 3
    assert noted == ["ruff", "ruff", "mypy"]


def test_further_arguments_go_to_the_last_command(bootstrap, pip_calls, commands):
    bootstrap.main(["bench", "-k", "sim"])
    assert [command[-2:] for command in commands] == [["bench", "sim"], ["bench", "peers"], ["-k", "sim"]]


@pytest.mark.parametrize("verb", ["train", "test", "check", "slow", "bench", "setup", "clean"])
def test_make_and_help_know_every_verb(bootstrap, verb):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    verbs = next(line for line in makefile.splitlines() if line.startswith("VERBS")).split()
    assert verb in verbs
    assert verb in bootstrap.VERBS
    assert f"\n  {verb} " in bootstrap.HELP


def test_the_child_s_exit_status_comes_back(bootstrap, monkeypatch):
    monkeypatch.setattr(bootstrap, "venv_python", lambda venv: Path(sys.executable))
    assert bootstrap.run(["-c", "raise SystemExit(7)"]) == 7


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals to die of")
def test_a_killed_child_counts_as_a_shell_counts(bootstrap, monkeypatch):
    monkeypatch.setattr(bootstrap, "venv_python", lambda venv: Path(sys.executable))
    assert bootstrap.run(["-c", "import os; os.kill(os.getpid(), 9)"]) == 137


def test_clean_takes_caches_and_leaves_results(bootstrap):
    for name in (".venv/lib", "build", ".mypy_cache", "src/hotlap/__pycache__", "results", "out"):
        (bootstrap.ROOT / name).mkdir(parents=True)
    assert bootstrap.main(["clean"]) == 0
    left = {path.relative_to(bootstrap.ROOT).as_posix() for path in bootstrap.ROOT.rglob("*") if path.is_dir()}
    assert left == {"src", "src/hotlap", "results", "out"}


# --- the constraints file ---


def test_every_constraint_is_one_exact_pin():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line.split(";")[0].strip() for line in lines if line.strip() and not line.startswith("#")]
    assert [pin for pin in pins if pin.count("==") != 1 or "+" in pin] == []
    names = [pin.split("==")[0].lower().replace("_", "-") for pin in pins]
    assert len(names) == len(set(names))
    assert "hotlap" not in names


def test_torch_is_pinned_once_and_found(bootstrap):
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    assert bootstrap.torch_pin(text).startswith("torch==2.")
    with pytest.raises(bootstrap.SetupError, match="must pin torch"):
        bootstrap.torch_pin("torchvision==1.0\n")
