"""`tools/lint_javascript.py`: what it finds, what it installs, and what it does where Node.js is missing."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / "tools" / "javascript"
GOOD = "export const one = 1;\n"


@pytest.fixture
def lint(tmp_path, monkeypatch):
    """A private copy of the module for a project of one file, `src/one.js`, with the pins and rules of this one."""
    spec = importlib.util.spec_from_file_location("lint_javascript_under_test", ROOT / "tools" / "lint_javascript.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.ROOT, module.FOLDER = tmp_path, tmp_path / "tools" / "javascript"
    module.FOLDER.mkdir(parents=True)
    shutil.copy(TOOLS / "package.json", module.FOLDER)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "one.js").write_text(GOOD, encoding="utf-8")
    monkeypatch.delenv("CI", raising=False)
    return module


def pretend(lint, monkeypatch, *, node="v20.19.0", npm=True):
    """Make the module see this Node.js and npm; returns the commands that it would run."""
    commands = []
    found = {"node": node, "npm": npm}
    monkeypatch.setattr(lint.shutil, "which", lambda name: name if found[name] else None)

    def run(command, **_):
        if command[1:] != ["--version"]:
            commands.append(command)
        return subprocess.CompletedProcess(command, 0, stdout=f"{node}\n")

    monkeypatch.setattr(lint.subprocess, "run", run)
    return commands


def install_versions(lint, **changed):
    """Pretend that npm has installed the pinned versions, some of them changed."""
    for name, pin in json.loads((TOOLS / "package.json").read_text(encoding="utf-8"))["devDependencies"].items():
        folder = lint.FOLDER / "node_modules" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text(json.dumps({"version": changed.get(name, pin)}), encoding="utf-8")


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"node": None}, "Node.js 18.18 or newer is missing"),
        ({"node": "v18.17.1"}, "Node.js 18.18 or newer (this is v18.17.1) is missing"),
        ({"npm": False}, "npm is missing"),
    ],
)
def test_without_node_or_npm_it_is_skipped_in_one_line_and_fails_in_ci(lint, monkeypatch, capsys, found, words):
    commands = pretend(lint, monkeypatch, **found)
    assert lint.main([]) == 0
    [line] = capsys.readouterr().err.splitlines()
    assert line == f"[javascript] {words}: skipping the format and lint of JavaScript"
    monkeypatch.setenv("CI", "true")
    assert lint.main([]) == 2
    assert words in capsys.readouterr().err
    assert commands == []


def test_packages_are_installed_once_and_again_after_a_pin_changed(lint, monkeypatch):
    commands = pretend(lint, monkeypatch)
    assert lint.main([]) == 0
    assert commands[0] == ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"]
    commands.clear()
    install_versions(lint)
    assert lint.main([]) == 0
    assert [command[0] for command in commands] == ["node", "node"]
    commands.clear()
    install_versions(lint, eslint="1.0.0")
    assert lint.main([]) == 0
    assert commands[0][:2] == ["npm", "ci"]


def test_an_installation_that_fails_is_an_error(lint, monkeypatch, capsys):
    pretend(lint, monkeypatch)
    lint.install = lambda: False
    assert lint.main([]) == 2
    assert "go online and run this again" in capsys.readouterr().err


@pytest.mark.parametrize("failing", ["prettier", "eslint"])
def test_each_tool_can_fail_the_check_and_both_always_run(lint, monkeypatch, failing):
    pretend(lint, monkeypatch)
    install_versions(lint)
    ran = []
    lint.run_tool = lambda tool, *options: ran.append(tool) or int(failing in tool[0])
    assert lint.main([]) == 1
    assert ran == [lint.PRETTIER, lint.ESLINT]


def test_an_unknown_option_is_refused(lint, capsys):
    assert lint.main(["--fxi"]) == 2
    assert "the only option is --fix" in capsys.readouterr().err


# --- with the tools themselves ---


@pytest.fixture
def real_lint(lint):
    """The module with the installed tools."""
    if lint.missing_program() or not (TOOLS / "node_modules").is_dir():
        if os.environ.get("CI") == "true":
            pytest.fail("prettier and eslint are missing: CI must run them")
        pytest.skip("prettier and eslint are missing: python tools/lint_javascript.py installs them")
    for name in ("eslint.config.mjs", "prettier.config.mjs"):
        shutil.copy(TOOLS / name, lint.FOLDER)
    (lint.FOLDER / "node_modules").symlink_to(TOOLS / "node_modules", target_is_directory=True)
    return lint


# A file that breaks each rule.
BREACHES = {
    "no-undef": "export const one = two;\n",
    "no-unused-vars": "const one = 1;\n",
    "prefer-const": "let one = 1;\nexport const two = one;\n",
    "eqeqeq": "export const isOne = (value) => value == 1;\n",
    "no-shadow": "export const one = (two) => [1].map((two) => two).concat(two);\n",
    "no-var": "export var one = 1;\n",
    "max-len": f"// {'a' * 118}\n",
}


def test_a_breach_of_each_rule_is_found(real_lint, capfd):
    for rule, text in BREACHES.items():
        (real_lint.ROOT / "src" / f"{rule}.js").write_text(text, encoding="utf-8")
    assert real_lint.main([]) == 1
    found = re.findall(r"^/\S*/(\S+)\.js\n +\d+:\d+ +error .* (\S+)$", capfd.readouterr().out, re.MULTILINE)
    assert sorted(found) == sorted((rule, rule) for rule in BREACHES)


def test_good_javascript_passes_badly_formatted_fails_and_fix_formats_it(real_lint, capfd):
    path = real_lint.ROOT / "src" / "one.js"
    assert real_lint.main([]) == 0
    path.write_text('export const one = "1"\n', encoding="utf-8")
    assert real_lint.main([]) == 1
    assert "src/one.js" in capfd.readouterr().err
    assert real_lint.main(["--fix"]) == 0
    assert path.read_text(encoding="utf-8") == "export const one = '1';\n"


# --- the pins ---


def test_every_version_is_exact_and_the_lock_file_names_no_host():
    package = json.loads((TOOLS / "package.json").read_text(encoding="utf-8"))
    lock = json.loads((TOOLS / "package-lock.json").read_text(encoding="utf-8"))
    pins = package["devDependencies"]
    assert [pin for pin in pins.values() if not re.fullmatch(r"\d+\.\d+\.\d+", pin)] == []
    assert {name: lock["packages"][f"node_modules/{name}"]["version"] for name in pins} == pins
    others = [one for path, one in lock["packages"].items() if path]
    assert all("integrity" in one and "resolved" not in one for one in others)
