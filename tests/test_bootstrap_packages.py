"""`tools/bootstrap_packages.py` without a network: where torch comes from, pins, hashes and Box2D."""

import json
import sys

import pytest

from bootstrap_project import HERE

CPU = "--no-deps --index-url https://download.pytorch.org/whl/cpu torch==2.13.0"


def refusal(bootstrap, capsys, verb="setup"):
    """What a set-up that fails says last; it leaves no stamp."""
    assert bootstrap.main([verb]) == 2
    assert not bootstrap.STAMP.exists()
    return capsys.readouterr().err.splitlines()[-1]


# --- where torch comes from ---


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
    bootstrap.packages.has_nvidia_driver = lambda: has_driver
    bootstrap.packages.is_reachable = lambda url: is_reachable
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
    bootstrap.packages.is_reachable = lambda url: is_reachable
    monkeypatch.setenv("HOTLAP_TORCH", wish)
    assert words in refusal(bootstrap, capsys)


def test_an_installed_torch_of_the_pinned_version_is_kept(bootstrap, pip):
    bootstrap.venv.ask_python = lambda code: "2.13.0+cpu" if "torch" in code else HERE
    assert bootstrap.main(["setup"]) == 0
    assert not any("torch==" in call for call in pip)


# --- pins and Box2D ---


@pytest.mark.parametrize("failing", ["torch==", "constraints.txt", ".[dev]"])
def test_pins_are_not_dropped_silently(bootstrap, pip, capsys, failing):
    pip.failing = (failing,)
    assert "set HOTLAP_PINS=off" in refusal(bootstrap, capsys)
    assert "-e .[dev]" not in pip


def test_pins_are_dropped_where_that_is_asked_for(bootstrap, pip, capsys, monkeypatch):
    monkeypatch.setenv("HOTLAP_PINS", "off")
    pip.failing = ("torch==", ".[dev]")
    assert "If offline, go online and run this again." in refusal(bootstrap, capsys, "test")
    pip.failing = ("torch==", "constraints.txt")
    assert bootstrap.main(["setup"]) == 0
    assert pip[-1] == "-e .[dev]"
    err = capsys.readouterr().err
    assert "torch==2.13.0 was not installed" in err
    assert "without the pins of constraints.txt" in err


def test_box2d_is_built_if_it_has_no_wheel_may_fail_and_is_retried_by_setup(bootstrap, pip, capsys, commands):
    bootstrap.venv.ask_python = lambda code: None if "Box2D" in code else HERE
    pip.failing = ("gymnasium[box2d]", "box2d-build.txt")
    assert bootstrap.main(["test"]) == 0
    assert pip[-2] == f"--require-hashes --no-deps --no-build-isolation -r {bootstrap.packages.BUILD_HASHES}"
    assert "pygame-ce" in pip[-1]
    assert "LunarLander tests use EnvPool or are skipped" in capsys.readouterr().err
    pip.clear()
    bootstrap.main(["test"])
    assert pip == []
    bootstrap.main(["setup"])
    assert "gymnasium[box2d]" in pip[0]


# --- hashes ---


def write_hashes(bootstrap, digit="0"):
    path = bootstrap.packages.hash_file()
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"numpy==1.0 --hash=sha256:{digit * 64}\n", encoding="utf-8")
    return f"--require-hashes --no-deps -r {path}"


def write_torch_hashes(bootstrap, **builds):
    path = bootstrap.packages.TORCH_HASHES
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"pin": "torch==2.13.0", "hashes": {bootstrap.packages.hash_file().stem: builds}}))


def test_tools_and_packages_with_hashes_are_installed_before_the_project_and_no_build_fetches_others(bootstrap, pip):
    packages = write_hashes(bootstrap)
    tools = f"--require-hashes --no-deps -r {bootstrap.packages.TOOL_HASHES}"
    assert bootstrap.main(["setup"]) == 0
    assert pip.count(tools) == 1
    start = pip.index(tools)
    assert pip[start + 1] == packages
    assert pip[start + 2].endswith("--no-build-isolation -e .[dev]")
    assert [call for call in pip if ".[dev]" in call] == [pip[start + 2]]
    pip.clear()
    write_hashes(bootstrap, digit="1")
    assert bootstrap.main(["setup"]) == 0
    assert packages in pip


@pytest.mark.parametrize("what", ["packages", "torch", "tools"])
def test_another_hash_ends_the_set_up_unless_hashes_are_switched_off(bootstrap, pip, capsys, monkeypatch, what):
    checked = {
        "torch": "torch.txt",
        "tools": f"-r {bootstrap.packages.TOOL_HASHES}",
        "packages": write_hashes(bootstrap),
    }
    write_torch_hashes(bootstrap, default="a" * 64)
    pip.failing = (checked[what],)
    assert "set HOTLAP_HASHES=off" in refusal(bootstrap, capsys)
    assert checked[what] in pip[-1]
    assert not any(".[dev]" in call for call in pip)
    monkeypatch.setenv("HOTLAP_HASHES", "off")
    pip.clear()
    assert bootstrap.main(["setup"]) == 0
    assert any(call.endswith("setuptools swig wheel") for call in pip)
    assert not any("--require-hashes" in call for call in pip)


@pytest.mark.parametrize(("build", "is_cpu"), [("cpu", True), ("default", False)])
def test_torch_is_checked_against_the_hashes_of_its_builds(bootstrap, pip, build, is_cpu, capsys):
    bootstrap.packages.is_reachable = lambda url: is_cpu
    write_torch_hashes(bootstrap, **{build: "a" * 64}, other="b" * 64)
    assert bootstrap.main(["setup"]) == 0
    assert pip.torch == [f"torch==2.13.0 --hash=sha256:{'a' * 64} --hash=sha256:{'b' * 64}\n"]
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


def test_what_has_no_known_hash_is_told_in_one_line_each(bootstrap, pip, capsys):
    write_torch_hashes(bootstrap, cpu="a" * 64)
    pip.failing = ("--no-index",)
    assert bootstrap.main(["setup"]) == 0
    assert pip[2].endswith("torch==2.13.0")
    assert not any(f"-r {bootstrap.packages.hash_file()}" in call for call in pip)
    err = capsys.readouterr().err
    assert err.count("no known hash") == err.count("not checked against hashes") == 1
