"""Sets up `.venv` if needed and runs one verb in it.

usage: python tools/bootstrap.py VERB [args]

  train   train a car on track-01 (minutes), evaluate it and write a report; after Ctrl-C it continues where it was
  play    serve the page: watch the AI, race it, draw your own track
  test    run the fast tests, on all cores
  lint    check format, lint and types; of JavaScript too where Node.js is installed
  check   lint, then the fast tests until one fails
  slow    run the tests that take minutes, and note which passed in tests/last_passed.json
  slow-part  run about 20 minutes of them, others at each commit
  bench   install the simulators we compare with, then measure speed
  wheel   build wheel and sdist into dist/, check them, and test the wheel alone in an empty environment
  docs    build the documentation site into docs/_build/html
  setup   only set up .venv; retries optional packages that failed before
  clean   remove .venv and caches; results stay

Arguments after the verb go to its last command, e.g. `python tools/bootstrap.py test tests/sim -x`.
HOTLAP_TORCH=cpu installs torch from PyTorch's CPU index, HOTLAP_TORCH=default installs pip's default build. If unset,
the CPU index is used on Linux without an NVIDIA driver. To change an installed torch, run clean first.
HOTLAP_HASHES=off installs packages without checking their hashes. HOTLAP_PINS=off tries the versions that
pyproject.toml allows where the pinned ones cannot be installed, which is untested.
"""

# Standard library only. Old interpreters must be able to parse this file and what it imports to print a clear message
# instead of a traceback: hence the quoted annotations.

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import bootstrap_packages as packages
import bootstrap_venv as venv
from bootstrap_venv import SetupError, say

OLDEST = (3, 10)
NEWEST = (3, 13)

STAMP = venv.VENV / "bootstrap-stamp.json"
# These files decide what is installed: pip runs again when one of them changes.
INPUTS = (
    venv.ROOT / "pyproject.toml",
    packages.CONSTRAINTS,
    *(Path(file).resolve() for file in (__file__, packages.__file__, venv.__file__)),
)

CACHES = (
    "build",
    "dist",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".hypothesis",
    "docs/_build",
    "src/hotlap.egg-info",
    "tools/javascript/node_modules",
)
# The extra that a verb installs first: what it is, and what is said where it cannot be installed.
VERB_EXTRAS = {
    "bench": ("peers", "the simulators that the benchmark compares with", "the benchmark lists the missing ones"),
    "docs": ("docs", "Sphinx and its parts", "the documentation cannot be built without it"),
    "wheel": ("package", "twine", "its check is left out"),
}
CANNOT_RUN = 2
INTERRUPTED = 130

# Several processes run the tests, four more than there are cores: some tests wait. `--workers 0` makes it one process.
FAST_TESTS = f"pytest --workers {min(8, (os.cpu_count() or 1) + 4)}"
LINT = ["ruff format --check", "ruff check", "tools/lint_javascript.py", "mypy"]
SLOW_PART_S = 1200

# Each verb runs `python -m COMMAND` for each of its commands, or the script where it names one of tools/. Arguments
# after the verb go to the last command.
VERBS: "dict[str, list[str]]" = {
    "train": ["hotlap train --recipe racer-ppo --continue --report"],
    "play": ["hotlap play"],
    "test": [FAST_TESTS],
    "lint": LINT,
    "check": [*LINT, FAST_TESTS + " -x -q"],
    "slow": ["pytest --slow --timeout 0 --record"],
    "slow-part": [f"pytest --slow --timeout 0 --part {SLOW_PART_S}"],
    "bench": ["hotlap bench sim", "hotlap bench peers", "pytest --bench --timeout 0"],
    "wheel": ["tools/build_packages.py", "pytest --slow --timeout 0 tests/test_wheel.py"],
    "docs": ["tools/build_docs.py"],
    "setup": [],
    "clean": [],
}


def check_version(version: "tuple[int, int]", verb: str) -> None:
    """Refuse a Python that is too old or too new."""
    if OLDEST <= version <= NEWEST:
        return
    names = [f"python3.{minor}" for minor in range(NEWEST[1], OLDEST[1] - 1, -1)]
    usable = [name for name in names if shutil.which(name)]
    advice = f"Run `make {verb} PYTHON={usable[0]}`." if usable else "Install one of those and run this again with it."
    raise SetupError("Hotlap needs Python {}.{} to {}.{}; this is {}.{}. {}".format(*OLDEST, *NEWEST, *version, advice))


def expected_stamp() -> "dict[str, object]":
    """The stamp of an environment that is up to date, without the optional packages."""
    digest = hashlib.sha256()
    known = (packages.hash_file(), packages.TOOL_HASHES, packages.BUILD_HASHES, packages.TORCH_HASHES)
    for path in (*INPUTS, *(path for path in known if path.exists())):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return {"digest": digest.hexdigest(), "python": venv.python_name(), "root": str(venv.ROOT)}


def read_stamp() -> "dict[str, object]":
    """The stamp of the last complete installation, or {} if there is none or it is damaged."""
    try:
        stamp = json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def is_current(stamp: "dict[str, object]") -> bool:
    """Whether the environment was installed from the current inputs, in this folder, with this Python."""
    return all(stamp.get(key) == value for key, value in expected_stamp().items())


def ensure_environment(verb: str) -> None:
    """Bring `.venv` up to date for `verb`. Offline and without pip if it already is."""
    stamp = read_stamp()
    fault = venv.find_fault(stamp) if venv.VENV.exists() or venv.VENV.is_symlink() else None
    if fault:
        say(f"{venv.VENV.name} {fault}: making a new one")
        venv.remove_venv()
    if is_current(stamp) and not fault:
        done = dict(stamp)
    else:
        if not venv.VENV.exists():
            venv.make_venv()
        elif STAMP.exists():
            # An interrupted installation must leave no stamp.
            STAMP.unlink()
        packages.install_torch()
        packages.install_project()
        done = expected_stamp()
    if "box2d" not in done or (verb == "setup" and not done["box2d"]):
        done["box2d"] = packages.install_box2d()
    extra, content, otherwise = VERB_EXTRAS.get(verb, ("", "", ""))
    if extra and not done.get(extra):
        done[extra] = True
        say(f"installing {content}")
        if not venv.pip_install("-c", str(packages.CONSTRAINTS), "-e", f".[{extra}]"):
            say(f"not all of it is available here: {otherwise}")
    if done != stamp:
        STAMP.write_text(json.dumps(done, indent=2) + "\n", encoding="utf-8")


def inside_root(name: str) -> Path:
    """The path of `name` below the project; anything else must never be removed."""
    path = Path(os.path.normpath(str(venv.ROOT / name)))
    if venv.ROOT not in path.parents:
        raise SetupError(f"{name!r} is not a folder below {venv.ROOT}, so nothing is removed.")
    return path


def clean() -> None:
    """Remove what can be made again; `results/` and `out/` hold the user's work and stay."""
    caches = [inside_root(name) for name in CACHES]
    venv.remove_venv()
    for path in caches:
        shutil.rmtree(str(path), ignore_errors=True)
    for top in ("src", "tests", "tools", "benchmarks"):
        for folder in (venv.ROOT / top).rglob("__pycache__"):
            shutil.rmtree(str(folder), ignore_errors=True)


def run(command: "list[str]") -> int:
    """Run the environment's python with `command`; returns its exit status as a shell would."""
    process = subprocess.Popen([str(venv.VENV_PYTHON), *command], cwd=str(venv.ROOT), env=venv.activated_environ())
    before = signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    try:
        while True:
            try:
                status = process.wait()
                return status if status >= 0 else 128 - status
            except KeyboardInterrupt:
                # The child got it too and may be saving its work.
                continue
    finally:
        signal.signal(signal.SIGTERM, before)


def run_verb(verb: str, arguments: "list[str]") -> int:
    """Run a verb's commands in order and stop at the first that fails."""
    commands = [([] if command.startswith("tools/") else ["-m"]) + command.split() for command in VERBS[verb]]
    status = 0
    while commands and status == 0:
        command = commands.pop(0)
        status = run(command if commands else command + arguments)
    return status


def main(arguments: "list[str]") -> int:
    """Do what the command line asks; returns the exit status."""
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(__doc__)
        return 0 if arguments else CANNOT_RUN
    verb, rest = arguments[0], arguments[1:]
    if verb not in VERBS:
        say(f"there is no verb {verb!r}; the verbs are {', '.join(VERBS)}.")
        return CANNOT_RUN
    try:
        if verb == "clean":
            clean()
            return 0
        check_version((sys.version_info[0], sys.version_info[1]), verb)
        ensure_environment(verb)
        if verb == "setup":
            say(f"{venv.VENV.name} is ready")
        return run_verb(verb, rest)
    except (SetupError, OSError) as error:
        say(str(error))
        return CANNOT_RUN
    except KeyboardInterrupt:
        say("interrupted; run the same command again to continue")
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
