"""Hostile recipe files: each is refused with one line that names the file, in well under a second, and runs nothing.

A recipe is the user's own file and may choose an environment. It may not import code, hang, or fail with a traceback.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path

import pytest

from hotlap.cli.main import main
from hotlap.config import read_mapping
from hotlap.envs.settings import RacerSettings
from hotlap.errors import ConfigError, HotlapError
from hotlap.runs.recipe import find_recipe, resolve_config

SECONDS = 5.0  # each takes milliseconds; the machine may be busy

HOSTILE = {
    "unknown key": "stepz = 5",
    "unknown table": "[secrets]\na = 1",
    "unknown key in a table": "[ppo]\nlearning_rat = 1.0",
    "include": 'include = "/etc/passwd"',
    "import": 'import = ["os"]',
    "key with control characters": '"steps\\n\\u001b[31m" = 5',
    "empty key": '"" = 5',
    "dunder key": "__class__ = 5",
    "the same key twice": "steps = 5\nsteps = 6",
    "text for a number": 'steps = "many"',
    "boolean for a number": "steps = true",
    "fraction for a whole number": "steps = 1.5",
    "list for a number": "steps = [1]",
    "table for a number": "[steps]\na = 1",
    "number for a table": "ppo = 5",
    "list for a table": "[[ppo]]\ngamma = 0.9",
    "date for a number": "steps = 2020-01-01",
    "NaN": "[ppo]\nlearning_rate = nan",
    "infinity": "[ppo]\nlearning_rate = -inf",
    "1e308 squared": "[ppo]\nlearning_rate = 1e999",
    "negative": "steps = -1",
    "more steps than 64 bits": f"steps = {2**70}",
    "number of 4,000 digits": f"steps = {'9' * 4000}",
    "number of 5,000 digits": f"steps = {'9' * 5000}",
    "hexadecimal number of 9,000 digits": f"steps = 0x{'f' * 9000}",
    "hexadecimal number of 9,000 digits for a fraction": f"[ppo]\nlearning_rate = 0x{'f' * 9000}",
    "hexadecimal number of 9,000 digits for a text": f"env = 0x{'f' * 9000}",
    "hexadecimal number of 9,000 digits in a list": f"[policy]\nnet_arch = [0x{'f' * 9000}]",
    "ten million environments": "num_envs = 10_000_000",
    "200,000 layers": f"[policy]\nnet_arch = [{'8, ' * 200_000}]",
    "200,000 layers of the critic": f"[policy]\nnet_arch = [8]\ncritic_arch = [{'8, ' * 200_000}]",
    "layers of four billion weights": "[policy]\nnet_arch = [65_536, 65_536]",
    "a layer wider than any": "[policy]\nnet_arch = [1_000_000_000]",
    "lists 50,000 deep": "env_args = {a = " + "[" * 50_000 + "]" * 50_000 + "}",
    "lists 200 deep": "env_args = {a = " + "[" * 200 + "]" * 200 + "}",
    "tables 200 deep": "[env_args." + ".".join("a" * 200) + "]\nb = 1",
    "dotted keys 20,000 deep": ".".join("a" * 20_000) + " = 1",
    "track outside the registry": '[racer]\ntrack = "../../../etc/passwd"\n[racer.episode]\nmaxStep = 1',
    "algorithm as a path": 'algo = "../../ppo"',
    "device as a command": 'device = "cpu; rm -rf /"',
    "NUL in the text": "steps = 5\0",
    "not TOML": "PK\x03\x04",
    "JSON instead of TOML": '{"steps": 5}',
    "unclosed": "[ppo",
}


@pytest.mark.parametrize("attack", HOSTILE)
def test_a_hostile_recipe_is_refused_in_one_line(attack: str, tmp_path: Path):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(HOSTILE[attack], encoding="utf-8")
    started = time.thread_time()
    with pytest.raises(ConfigError) as caught:
        resolve_config(str(recipe), {})
    assert time.thread_time() - started < SECONDS
    message = str(caught.value)
    assert "recipe.toml" in message
    assert message.isprintable()
    assert len(message) < 1000


@pytest.mark.parametrize(
    "attack",
    ["hexadecimal number of 9,000 digits", "dotted keys 20,000 deep", "lists 50,000 deep", "200,000 layers"],
)
def test_the_command_line_says_it_in_one_line_with_exit_code_2(attack: str, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("recipe.toml").write_text(HOSTILE[attack], encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["hotlap", "train", "--recipe", "recipe.toml"])
    with pytest.raises(SystemExit) as stop:
        main()
    err = capsys.readouterr().err
    assert stop.value.code == 2
    assert "recipe.toml" in err
    assert err.strip().count("\n") == 0
    assert [path.name for path in tmp_path.iterdir()] == ["recipe.toml"]


def test_other_encodings_and_huge_files_are_refused(tmp_path: Path):
    recipe = tmp_path / "recipe.toml"
    for content in (b"\xff\xfes\0t\0e\0p\0s\0", b"# \xfc\n", b"# " + b"x" * (1 << 20)):
        recipe.write_bytes(content)
        with pytest.raises(ConfigError, match=r"recipe\.toml"):
            resolve_config(str(recipe), {})


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipes_devices_and_folders_are_refused_without_reading_them(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "endless.toml").symlink_to("/dev/zero")
    (tmp_path / "folder.toml").mkdir()
    outcomes: dict[str, str] = {}

    def read(name: str) -> None:
        try:
            read_mapping(tmp_path / name)
        except HotlapError as error:
            outcomes[name] = str(error)

    for name in ("pipe.toml", "endless.toml", "folder.toml"):
        reader = threading.Thread(target=read, args=(name,), daemon=True)
        reader.start()
        reader.join(SECONDS)
        assert "not a plain file" in outcomes.get(name, "it hangs")


@pytest.mark.parametrize(
    "name",
    ["../racer-ppo", "../training/racer-ppo", "/etc/passwd", "racer-ppo\0", "", ".", "racer-ppo/../x", "~", "x" * 9000],
)
def test_a_name_is_a_shipped_recipe_or_a_toml_file_and_nothing_else(name: str):
    with pytest.raises(ConfigError, match=r"is not known\. Shipped ones"):
        find_recipe(name)


@pytest.mark.parametrize("path", ["a\0b.toml", "x" * 9000 + ".toml", "no/such/folder/x.toml", "../" * 300 + "x.toml"])
def test_a_path_that_cannot_be_opened_is_refused(path: str):
    with pytest.raises(HotlapError, match=r"settings file|cannot be read"):
        resolve_config(path, {})


HOSTILE_JSON = {
    "lists 100,000 deep": '{"maxSteps": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "lists 500 deep": '{"maxSteps": ' + "[" * 500 + "]" * 500 + "}",
    "number of 5,000 digits": '{"maxSteps": ' + "9" * 5000 + "}",
    "NaN": '{"maxSteps": NaN}',
    "infinity": '{"rewards": {"wall": Infinity}}',
    "a list": "[1, 2]",
    "null": "null",
    "text": '"maxSteps"',
    "unknown key": '{"__proto__": 1}',
    "cut short": '{"maxSteps": 1',
    "half a surrogate": json.dumps({"\ud800": 1}),
}


@pytest.mark.parametrize("attack", HOSTILE_JSON)
def test_hostile_environment_settings_are_refused_in_one_line(attack: str, tmp_path: Path):
    file = tmp_path / "ai-config.json"
    file.write_text(HOSTILE_JSON[attack], encoding="utf-8")
    with pytest.raises(ConfigError, match=r"ai-config\.json") as caught:
        RacerSettings.load(str(file))
    assert str(caught.value).isprintable()
