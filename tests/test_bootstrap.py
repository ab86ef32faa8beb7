"""`tools/bootstrap.py` without a network: what it decides, and that a second call installs nothing."""

import ast
import importlib.util
import json
import os
import re
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

ROOT = Path(__file__).resolve().parent.parent
HERE = f"{sys.implementation.name} {sys.version_info[0]}.{sys.version_info[1]}"
INPUTS = ("pyproject.toml", "constraints.txt", "bootstrap.py")


@pytest.fixture
def bootstrap(tmp_path, monkeypatch):
    """A private copy of the module for an empty project, on Linux without a driver and without a network."""
    spec = importlib.util.spec_from_file_location("bootstrap_under_test", ROOT / "tools" / "bootstrap.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in INPUTS:
        (tmp_path / name).write_text("numpy==1.0\ntorch==2.13.0\n", encoding="utf-8")
    module.ROOT = tmp_path
    module.VENV = tmp_path / ".venv"
    module.STAMP = module.VENV / "bootstrap-stamp.json"
    module.CONSTRAINTS = tmp_path / "constraints.txt"
    module.TOOL_HASHES, module.BUILD_HASHES = tmp_path / "build-tools.txt", tmp_path / "box2d-build.txt"
    module.TORCH_HASHES = tmp_path / "hashes" / "torch.json"
    module.INPUTS = tuple(tmp_path / name for name in INPUTS)
    module.ask_python = lambda code: HERE
    module.has_nvidia_driver = lambda: False
    module.is_reachable = lambda url: False
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("HOTLAP_TORCH", "HOTLAP_HASHES", "HOTLAP_PINS"):
        monkeypatch.delenv(name, raising=False)
    return module


@pytest.fixture
def pip(bootstrap):
    """The arguments of every pip call, noted instead of run; a call that contains a text of `pip.failing` fails."""

    class Calls(list):
        failing: tuple[str, ...] = ()

    calls = Calls()

    def install(*arguments):
        calls.append(" ".join(arguments))
        return not any(text in calls[-1] for text in calls.failing)

    bootstrap.pip_install = install
    bootstrap.make_venv = lambda: (calls.append("venv"), bootstrap.VENV.mkdir())
    return calls


@pytest.fixture
def commands(bootstrap):
    """The verbs' commands, noted instead of run."""
    noted = []
    bootstrap.run = lambda command: noted.append(" ".join(command)) or 0
    return noted


@pytest.mark.parametrize("version", [(3, 9), (3, 14), (4, 0)])
@pytest.mark.parametrize(
    ("found", "advice"), [("python3.12", "make test PYTHON=python3.12"), (None, "Install one of those")]
)
def test_an_unsupported_python_is_refused_in_one_line(bootstrap, monkeypatch, capsys, version, found, advice):
    monkeypatch.setattr(sys, "version_info", (*version, 1))
    monkeypatch.setattr(bootstrap.shutil, "which", lambda name: name if name == found else None)
    assert bootstrap.main(["test"]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "Hotlap needs Python 3.10 to 3.13; this is {}.{}.".format(*version) in line
    assert advice in line


def test_an_old_python_can_parse_the_file_and_its_versions_are_those_of_the_project(bootstrap):
    ast.parse((ROOT / "tools" / "bootstrap.py").read_text(encoding="utf-8"), feature_version=(3, 7))
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'requires-python = ">={}.{}"'.format(*bootstrap.OLDEST) in text
    assert "Python :: {}.{}".format(*bootstrap.NEWEST) in text


def test_the_first_call_installs_torch_before_the_project_and_the_second_nothing(bootstrap, pip, commands):
    assert bootstrap.main(["test", "-k", "laps"]) == 0
    assert [call.split()[-1] for call in pip[:3]] == ["venv", "torch==2.13.0", str(bootstrap.TOOL_HASHES)]
    assert pip[3].endswith("-e .[dev]")
    pip.clear()
    assert bootstrap.main(["test"]) == 0
    assert pip == []
    assert commands == [f"-m {bootstrap.FAST_TESTS} -k laps", f"-m {bootstrap.FAST_TESTS}"]


@pytest.mark.parametrize("name", INPUTS)
def test_a_changed_input_installs_again_into_the_same_environment(bootstrap, pip, name):
    bootstrap.main(["setup"])
    pip.clear()
    with (bootstrap.ROOT / name).open("a", encoding="utf-8") as file:
        file.write("# more\n")
    bootstrap.main(["setup"])
    assert "venv" not in pip
    assert pip[-1].endswith("-e .[dev]")


def test_an_interrupted_installation_leaves_no_stamp_and_a_damaged_one_counts_as_none(bootstrap, pip):
    bootstrap.main(["setup"])
    (bootstrap.ROOT / "constraints.txt").write_text("torch==2.14.0\n", encoding="utf-8")

    bootstrap.install_project = Mock(side_effect=KeyboardInterrupt)
    assert bootstrap.main(["test"]) == 130
    assert not bootstrap.STAMP.exists()
    for damaged in ("", "{", "[]", "null"):
        bootstrap.STAMP.write_text(damaged, encoding="utf-8")
        assert bootstrap.read_stamp() == {}


@pytest.mark.parametrize(
    ("answer", "root", "words"),
    [
        (None, {}, "has no working Python with pip"),
        ("cpython 3.8", {}, "has cpython 3.8, not"),
        (HERE, {"root": "elsewhere"}, "was made for another folder (elsewhere)"),
    ],
)
def test_an_unusable_environment_is_replaced(bootstrap, pip, capsys, answer, root, words):
    bootstrap.main(["setup"])
    bootstrap.STAMP.write_text(json.dumps({**bootstrap.read_stamp(), **root}), encoding="utf-8")
    bootstrap.ask_python = lambda code: answer
    pip.clear()
    assert bootstrap.main(["setup"]) == 0
    assert pip[0] == "venv"
    assert words in capsys.readouterr().err


# --- where torch comes from ---

CPU = "--no-deps --index-url https://download.pytorch.org/whl/cpu torch==2.13.0"


@pytest.mark.parametrize(
    ("platform", "has_driver", "is_reachable", "wish", "is_cpu", "reason"),
    [
        ("linux", False, True, None, True, "the CPU build (no NVIDIA driver found)"),
        ("linux", False, False, None, False, "/whl/cpu does not answer"),
        ("linux", True, True, None, False, "NVIDIA driver found"),
        ("linux", True, True, "cpu", True, "HOTLAP_TORCH=cpu"),
        ("linux", False, True, "default", False, "HOTLAP_TORCH=default"),
        ("darwin", False, True, None, False, "no CUDA on this platform"),
    ],
)
def test_the_source_of_torch(
    bootstrap, pip, monkeypatch, capsys, platform, has_driver, is_reachable, wish, is_cpu, reason
):
    monkeypatch.setattr(sys, "platform", platform)
    bootstrap.has_nvidia_driver = lambda: has_driver
    bootstrap.is_reachable = lambda url: is_reachable
    if wish:
        monkeypatch.setenv("HOTLAP_TORCH", wish)
    assert bootstrap.main(["setup"]) == 0
    assert (pip[1] == CPU) == is_cpu
    [line] = [line for line in capsys.readouterr().err.splitlines() if "installing torch" in line]
    assert reason in line


@pytest.mark.parametrize(
    ("wish", "is_reachable", "words"),
    [("cpu", False, "does not answer"), ("cpu", True, "could not install torch"), ("gpu", True, "must be cpu")],
)
def test_an_unusable_source_of_torch_is_an_error(bootstrap, pip, monkeypatch, capsys, wish, is_reachable, words):
    pip.failing = ("torch==",)
    bootstrap.is_reachable = lambda url: is_reachable
    monkeypatch.setenv("HOTLAP_TORCH", wish)
    assert bootstrap.main(["setup"]) == 2
    assert words in capsys.readouterr().err.splitlines()[-1]


def test_an_installed_torch_of_the_pinned_version_is_kept(bootstrap, pip):
    bootstrap.ask_python = lambda code: "2.13.0+cpu" if "torch" in code else HERE
    assert bootstrap.main(["setup"]) == 0
    assert not any("torch==" in call for call in pip)


def test_pins_are_dropped_only_where_that_is_asked_for(bootstrap, pip, capsys, monkeypatch):
    pip.failing = ("torch==",)
    assert bootstrap.main(["setup"]) == 2
    assert "set HOTLAP_PINS=off" in capsys.readouterr().err.splitlines()[-1]
    pip.failing = ("torch==", "constraints.txt")
    monkeypatch.setenv("HOTLAP_PINS", "off")
    assert bootstrap.main(["setup"]) == 0
    assert pip[-1] == "-e .[dev]"
    err = capsys.readouterr().err
    assert "torch==2.13.0 was not installed" in err
    assert "without the pins of constraints.txt" in err
    bootstrap.STAMP.unlink()
    monkeypatch.delenv("HOTLAP_PINS")
    pip.failing = ("constraints.txt",)
    pip.clear()
    assert bootstrap.main(["setup"]) == 2
    assert "set HOTLAP_PINS=off" in capsys.readouterr().err.splitlines()[-1]
    assert "-e .[dev]" not in pip  # no silent fallback
    assert not bootstrap.STAMP.exists()
    monkeypatch.setenv("HOTLAP_PINS", "off")
    pip.failing = ("torch==", ".[dev]")
    assert bootstrap.main(["test"]) == 2
    assert "If offline, go online and run this again." in capsys.readouterr().err.splitlines()[-1]
    assert not bootstrap.STAMP.exists()


def test_box2d_is_built_if_it_has_no_wheel_may_fail_and_is_retried_by_setup(bootstrap, pip, capsys, commands):
    bootstrap.ask_python = lambda code: None if "Box2D" in code else HERE
    pip.failing = ("gymnasium[box2d]", "box2d-build.txt")
    assert bootstrap.main(["test"]) == 0
    assert pip[-2] == f"--require-hashes --no-deps --no-build-isolation -r {bootstrap.BUILD_HASHES}"
    assert "pygame-ce" in pip[-1]
    assert "LunarLander tests use EnvPool or are skipped" in capsys.readouterr().err
    pip.clear()
    bootstrap.main(["test"])
    assert pip == []
    bootstrap.main(["setup"])
    assert "gymnasium[box2d]" in pip[0]


def test_peers_are_installed_once_and_may_fail(bootstrap, pip, capsys, commands):
    pip.failing = (".[peers]",)
    assert bootstrap.main(["bench"]) == 0
    assert "the benchmark lists the missing ones" in capsys.readouterr().err
    assert pip.pop().endswith("-e .[peers]")
    pip.clear()
    bootstrap.main(["bench"])
    assert pip == []


def test_further_arguments_go_to_the_last_command_and_check_stops_at_the_first_failure(bootstrap, pip, commands):
    bootstrap.main(["bench", "-k", "sim"])
    assert commands == ["-m hotlap bench sim", "-m hotlap bench peers", "-m pytest --bench --timeout 0 -k sim"]
    commands.clear()
    bootstrap.run = lambda command: commands.append(" ".join(command)) or (3 if "mypy" in command else 0)
    assert bootstrap.main(["check"]) == 3
    assert commands == ["-m ruff format --check", "-m ruff check", "tools/lint_javascript.py", "-m mypy"]


@pytest.mark.parametrize("verb", ["lint", "check"])
def test_javascript_that_breaks_a_rule_fails_the_verb(bootstrap, pip, commands, verb):
    bootstrap.run = lambda command: commands.append(command[-1]) or int(command == ["tools/lint_javascript.py"])
    assert bootstrap.main([verb]) == 1
    assert commands[-1] == "tools/lint_javascript.py"


def test_every_script_of_a_verb_exists(bootstrap):
    scripts = {command for commands in bootstrap.VERBS.values() for command in commands if command.startswith("tools/")}
    assert scripts == {"tools/lint_javascript.py"}
    assert all((ROOT / script).is_file() for script in scripts)


def test_train_never_overwrites_a_run(bootstrap, pip, commands):
    assert bootstrap.main(["train", "--seed", "7"]) == 0
    assert commands == ["-m hotlap train --recipe racer-ppo --continue --report --seed 7"]


def test_make_and_help_know_every_verb_and_an_unknown_one_is_refused(bootstrap, capsys):
    assert bootstrap.main(["fly"]) == 2
    assert "no verb 'fly'; the verbs are train, play, test, lint, check" in capsys.readouterr().err
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^VERBS := (.*)$", makefile, re.MULTILINE)[1].split() == list(bootstrap.VERBS)
    assert re.findall(r"^  ([\w-]+)  +\w", bootstrap.__doc__, re.MULTILINE) == list(bootstrap.VERBS)


def test_the_exit_status_of_a_command_is_returned(bootstrap):
    bootstrap.VENV_PYTHON = Path(sys.executable)
    assert bootstrap.run(["-c", "raise SystemExit(7)"]) == 7
    if os.name == "posix":
        assert bootstrap.run(["-c", "import os; os.kill(os.getpid(), 9)"]) == 137


def test_clean_removes_caches_and_keeps_results(bootstrap):
    for name in (
        ".venv/lib",
        "build",
        ".mypy_cache",
        "src/hotlap/__pycache__",
        "tools/javascript/node_modules",
        "results",
        "out",
    ):
        (bootstrap.ROOT / name).mkdir(parents=True)
    assert bootstrap.main(["clean"]) == 0
    left = {path.relative_to(bootstrap.ROOT).as_posix() for path in bootstrap.ROOT.rglob("*") if path.is_dir()}
    assert left == {"src", "src/hotlap", "tools", "tools/javascript", "results", "out"}


@pytest.mark.parametrize("name", ["/", ".", "", "..", "../other", "src/../.."])
def test_clean_removes_nothing_where_a_cache_is_not_below_the_project(bootstrap, monkeypatch, capsys, name):
    removed = []
    monkeypatch.setattr(bootstrap.shutil, "rmtree", lambda *path, **_: removed.append(path))
    bootstrap.VENV.mkdir()
    bootstrap.CACHES = ("build", name)
    assert bootstrap.main(["clean"]) == 2
    assert "so nothing is removed" in capsys.readouterr().err
    assert removed == []


def test_every_constraint_is_one_exact_pin_and_torch_is_among_them():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line.split(";")[0].strip() for line in lines if line.strip() and not line.startswith("#")]
    assert [pin for pin in pins if pin.count("==") != 1 or "+" in pin] == []
    names = [pin.split("==")[0].lower().replace("_", "-") for pin in pins]
    assert len(names) == len(set(names))
    assert {"torch", "hotlap"} & set(names) == {"torch"}


# --- hashes ---


def test_hashed_packages_are_installed_first_and_a_mismatch_ends_the_set_up(bootstrap, pip, capsys, monkeypatch):
    path = bootstrap.hash_file()
    path.parent.mkdir()
    path.write_text("numpy==1.0 --hash=sha256:00\n", encoding="utf-8")
    assert bootstrap.main(["setup"]) == 0
    hashed = pip.index(f"--require-hashes --no-deps -r {path}")
    assert pip[hashed + 1].endswith("-e .[dev]")
    path.write_text("numpy==1.0 --hash=sha256:01\n", encoding="utf-8")
    pip.failing = (f"-r {path}",)
    pip.clear()
    assert bootstrap.main(["setup"]) == 2
    assert "set HOTLAP_HASHES=off" in capsys.readouterr().err.splitlines()[-1]
    assert not any(".[dev]" in call for call in pip)
    monkeypatch.setenv("HOTLAP_HASHES", "off")
    assert bootstrap.main(["setup"]) == 0


def write_torch_hashes(bootstrap, **builds):
    path = bootstrap.ROOT / "hashes" / "torch.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"pin": "torch==2.13.0", "hashes": {bootstrap.hash_file().stem: builds}}))


@pytest.mark.parametrize(("build", "is_cpu"), [("cpu", True), ("default", False)])
def test_torch_is_checked_against_the_hashes_of_its_builds(bootstrap, pip, build, is_cpu, capsys):
    bootstrap.is_reachable = lambda url: is_cpu
    write_torch_hashes(bootstrap, **{build: "a" * 64}, other="b" * 64)
    lines = []
    install = bootstrap.pip_install

    def keep(*arguments):
        if arguments[-1].endswith("torch.txt"):
            lines.append(Path(arguments[-1]).read_text(encoding="utf-8"))
        return install(*arguments)

    bootstrap.pip_install = keep
    assert bootstrap.main(["setup"]) == 0
    assert lines == [f"torch==2.13.0 --hash=sha256:{'a' * 64} --hash=sha256:{'b' * 64}\n"]
    assert ("--index-url https://download.pytorch.org/whl/cpu" in pip[1]) == is_cpu
    assert "no known hash" not in capsys.readouterr().err


@pytest.mark.parametrize("has_file", [True, False])
def test_the_cpu_build_may_be_a_file_of_the_users_find_links(bootstrap, pip, capsys, has_file):
    write_torch_hashes(bootstrap, cpu="a" * 64, default="b" * 64)
    pip.failing = () if has_file else ("--no-index",)
    assert bootstrap.main(["setup"]) == 0
    asked = [call for call in pip if call.endswith("torch.txt")]
    assert ["--no-index" in call for call in asked] == ([True] if has_file else [True, False])
    assert ("a file of pip's find-links" in capsys.readouterr().err) == has_file


def test_a_torch_with_another_hash_ends_the_set_up(bootstrap, pip, capsys):
    write_torch_hashes(bootstrap, default="a" * 64)
    pip.failing = ("--require-hashes",)
    assert bootstrap.main(["setup"]) == 2
    assert "HOTLAP_HASHES=off" in capsys.readouterr().err.splitlines()[-1]
    assert not any(".[dev]" in call for call in pip)


def test_a_build_of_torch_without_a_known_hash_is_told_in_one_line(bootstrap, pip, capsys, monkeypatch):
    write_torch_hashes(bootstrap, cpu="a" * 64)
    pip.failing = ("--no-index",)
    assert bootstrap.main(["setup"]) == 0
    assert capsys.readouterr().err.count("no known hash") == 1
    assert pip[2].endswith("torch==2.13.0")
    write_torch_hashes(bootstrap, default="a" * 64)
    monkeypatch.setenv("HOTLAP_HASHES", "off")
    bootstrap.STAMP.unlink()
    pip.clear()
    assert bootstrap.main(["setup"]) == 0
    assert not any("--require-hashes" in call for call in pip)


def test_the_tools_of_builds_are_checked_and_no_build_fetches_others(bootstrap, pip):
    assert bootstrap.main(["setup"]) == 0
    [tools] = [call for call in pip if f"-r {bootstrap.TOOL_HASHES}" in call]
    assert tools.startswith("--require-hashes --no-deps")
    [project] = [call for call in pip if call.endswith("-e .[dev]")]
    assert pip.index(tools) < pip.index(project)
    assert "--no-build-isolation" in project


def test_tools_of_builds_with_other_hashes_end_the_set_up(bootstrap, pip, capsys, monkeypatch):
    pip.failing = (f"-r {bootstrap.TOOL_HASHES}",)
    assert bootstrap.main(["setup"]) == 2
    assert "set HOTLAP_HASHES=off" in capsys.readouterr().err.splitlines()[-1]
    assert not any(".[dev]" in call for call in pip)
    monkeypatch.setenv("HOTLAP_HASHES", "off")
    assert bootstrap.main(["setup"]) == 0
    assert any(call.endswith("setuptools swig wheel") for call in pip)


@pytest.mark.parametrize(
    ("name", "packages"), [("build-tools", ["setuptools", "swig", "wheel"]), ("box2d-build", ["box2d-py"])]
)
def test_the_hashes_of_builds_are_of_the_pinned_versions(name, packages):
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    pins = dict(re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.MULTILINE))
    lines = (ROOT / "hashes" / f"{name}.txt").read_text(encoding="utf-8").splitlines()[1:]
    assert [line.split("==")[0] for line in lines] == packages
    for line in lines:
        package, version = re.fullmatch(r"([\w.-]+)==(\S+)(?: --hash=sha256:[0-9a-f]{64})+", line).groups()
        assert pins[package] == version


def test_the_hashes_of_torch_are_of_the_pinned_version_for_every_platform(bootstrap):
    found = json.loads((ROOT / "hashes" / "torch.json").read_text(encoding="utf-8"))
    assert f"\n{found['pin']}\n" in (ROOT / "constraints.txt").read_text(encoding="utf-8")
    platforms = ("linux-x86_64", "linux-aarch64", "darwin-arm64", "win32-amd64")
    assert set(found["hashes"]) == {f"{one}-cpython3{minor}" for one in platforms for minor in range(10, 14)}
    for builds in found["hashes"].values():
        assert "default" in builds
        assert all(re.fullmatch(r"[0-9a-f]{64}", value) for value in builds.values())


def test_a_platform_without_hashes_is_told_so_in_one_line(bootstrap, pip, capsys):
    assert bootstrap.main(["setup"]) == 0
    assert capsys.readouterr().err.count("not checked against hashes") == 1
    assert not any(f"-r {bootstrap.hash_file()}" in call for call in pip)


@pytest.mark.parametrize("path", sorted((ROOT / "hashes").glob("*-cpython*.txt")), ids=lambda path: path.stem)
def test_every_hash_is_of_a_pinned_version(path):
    """After a pin changes, `tools/make_hashes.py` must write the hashes again."""
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    pins = dict(re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.MULTILINE))
    pins = {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in pins.items()}
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        name, version = re.fullmatch(r"([\w.-]+)==(\S+) --hash=sha256:[0-9a-f]{64}", line).groups()
        assert pins[re.sub(r"[-_.]+", "-", name).lower()] == version
