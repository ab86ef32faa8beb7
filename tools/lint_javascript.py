"""Checks the format and the lint rules of all JavaScript, with prettier and eslint.

usage: python tools/lint_javascript.py [--fix]

`tools/javascript/` has the rules and pins the versions, which npm installs there once. `--fix` formats the files and
mends what eslint can mend. Without Node.js and npm nothing is checked, and one line says so; where CI=true, that fails.
"""

# Standard library only, like tools/bootstrap.py.

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tools" / "javascript"
# Both tools leave out node_modules.
SOURCES = "{src,examples,tests,tools}/**/*.{js,mjs}"
PRETTIER = ("node_modules/prettier/bin/prettier.cjs", "prettier.config.mjs")
ESLINT = ("node_modules/eslint/bin/eslint.js", "eslint.config.mjs")
FAILED = 2


def say(text: str) -> None:
    """Print on stderr: stdout belongs to the tools."""
    print("[javascript] " + text, file=sys.stderr, flush=True)


def read_package(folder: Path) -> "dict[str, Any]":
    """The `package.json` of a folder, or {} if there is none or it is damaged."""
    try:
        package = json.loads((folder / "package.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return package if isinstance(package, dict) else {}


def version_numbers(text: str) -> "tuple[int, ...]":
    """The numbers of a version: (20, 19) for `v20.19` and for `>=20.19`."""
    return tuple(int(number) for number in re.findall(r"\d+", text))


def missing_program() -> "str | None":
    """What is missing to run the tools, or None."""
    oldest = read_package(FOLDER)["engines"]["node"].lstrip(">=")
    node = shutil.which("node")
    if node is None:
        return f"Node.js {oldest} or newer"
    found = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    if version_numbers(found) < version_numbers(oldest):
        return f"Node.js {oldest} or newer (this is {found})"
    return None if shutil.which("npm") else "npm"


def is_installed() -> bool:
    """Whether the pinned versions of all packages are installed."""
    pins = read_package(FOLDER)["devDependencies"]
    return all(read_package(FOLDER / "node_modules" / name).get("version") == pin for name, pin in pins.items())


def install() -> bool:
    """Install the packages of the lock file, each checked against its hash; False if npm fails."""
    say("installing prettier and eslint")
    command = [shutil.which("npm") or "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"]
    return subprocess.run(command, cwd=str(FOLDER), stdout=sys.stderr).returncode == 0


def run_tool(tool: "tuple[str, str]", *options: str) -> int:
    """Run a tool with its rules over all JavaScript; returns its exit status."""
    script, rules = (str(FOLDER / name) for name in tool)
    command = [shutil.which("node") or "node", script, "--config", rules, *options, SOURCES]
    return subprocess.run(command, cwd=str(ROOT)).returncode


def main(arguments: "list[str]") -> int:
    """Check everything, or mend it; returns the exit status."""
    if arguments not in ([], ["--fix"]):
        say("the only option is --fix")
        return FAILED
    missing = missing_program()
    if missing:
        is_ci = os.environ.get("CI") == "true"
        say(f"{missing} is missing: {'CI must check' if is_ci else 'skipping'} the format and lint of JavaScript")
        return FAILED if is_ci else 0
    if not is_installed() and not install():
        say("npm could not install prettier and eslint; its reason is above. If offline, go online and run this again.")
        return FAILED
    is_fixing = bool(arguments)
    formatted = run_tool(PRETTIER, "--write" if is_fixing else "--check", "--log-level", "warn")
    linted = run_tool(ESLINT, *(["--fix"] if is_fixing else []))
    return formatted or linted


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
