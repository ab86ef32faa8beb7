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
  setup   only set up .venv; retries optional packages that failed before
  clean   remove .venv and caches; results stay

Arguments after the verb go to its last command, e.g. `python tools/bootstrap.py test tests/sim -x`.
HOTLAP_TORCH=cpu installs torch from PyTorch's CPU index, HOTLAP_TORCH=default installs pip's default build. If unset,
the CPU index is used on Linux without an NVIDIA driver. To change an installed torch, run clean first.
HOTLAP_HASHES=off installs packages without checking their hashes. HOTLAP_PINS=off tries the versions that
pyproject.toml allows where the pinned ones cannot be installed, which is untested.
"""

# Standard library only. Old interpreters must be able to parse this file to print a clear message instead of a
# traceback: hence the quoted annotations.

import hashlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

OLDEST = (3, 10)
NEWEST = (3, 13)

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
STAMP = VENV / "bootstrap-stamp.json"
CONSTRAINTS = ROOT / "constraints.txt"
# Hashes of what builds need (setuptools, swig, wheel), of what is built (Box2D), and of torch's builds.
TOOL_HASHES = ROOT / "hashes" / "build-tools.txt"
BUILD_HASHES = ROOT / "hashes" / "box2d-build.txt"
TORCH_HASHES = ROOT / "hashes" / "torch.json"
# These files decide what is installed: pip runs again when one of them changes.
INPUTS = (ROOT / "pyproject.toml", CONSTRAINTS, Path(__file__).resolve())

# On x86-64 Linux pip's default torch includes gigabytes of CUDA libraries; this index has builds without them.
TORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"
PROBE_TIMEOUT_S = 5.0

CACHES = (
    "build",
    "dist",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".hypothesis",
    "src/hotlap.egg-info",
    "tools/javascript/node_modules",
)
CANNOT_RUN = 2
HASHES_ADVICE = "Go online, or, if you trust your package index although it has other files, set HOTLAP_HASHES=off."
PINS_ADVICE = "Go online and run this again, or set HOTLAP_PINS=off for versions that are untested."
INTERRUPTED = 130

# Several processes run the tests, two more than there are cores: some tests wait. `-n 0` after the verb makes it one.
FAST_TESTS = f"pytest -n {min(8, (os.cpu_count() or 1) + 2)} --dist loadfile --no-loadscope-reorder"
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
    "setup": [],
    "clean": [],
}


class SetupError(Exception):
    """A problem the user has to solve; only its text is printed."""


def say(text: str) -> None:
    """Print progress on stderr: stdout belongs to the verb."""
    print("[bootstrap] " + text, file=sys.stderr, flush=True)


def check_version(version: "tuple[int, int]", verb: str) -> None:
    """Refuse a Python that is too old or too new."""
    if OLDEST <= version <= NEWEST:
        return
    names = [f"python3.{minor}" for minor in range(NEWEST[1], OLDEST[1] - 1, -1)]
    usable = [name for name in names if shutil.which(name)]
    advice = f"Run `make {verb} PYTHON={usable[0]}`." if usable else "Install one of those and run this again with it."
    raise SetupError("Hotlap needs Python {}.{} to {}.{}; this is {}.{}. {}".format(*OLDEST, *NEWEST, *version, advice))


def python_name() -> str:
    """The running interpreter, e.g. `cpython 3.11`. A new patch release can use the same environment."""
    return "{} {}.{}".format(sys.implementation.name, *sys.version_info[:2])


def expected_stamp() -> "dict[str, object]":
    """The stamp of an environment that is up to date, without the optional packages."""
    digest = hashlib.sha256()
    known = (hash_file(), TOOL_HASHES, BUILD_HASHES, TORCH_HASHES)
    for path in (*INPUTS, *(path for path in known if path.exists())):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return {"digest": digest.hexdigest(), "python": python_name(), "root": str(ROOT)}


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


def venv_environ() -> "dict[str, str]":
    """The process environment with `.venv` activated.

    Python writes its bytecode: tests start a hundred processes, and without it each would compile every module again.
    """
    environ = {key: value for key, value in os.environ.items() if key not in ("PYTHONHOME", "PYTHONDONTWRITEBYTECODE")}
    environ["VIRTUAL_ENV"] = str(VENV)
    environ["PATH"] = str(VENV_PYTHON.parent) + os.pathsep + environ.get("PATH", "")
    environ.update(PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_NO_INPUT="1", PIP_USER="0")
    return environ


def ask_python(code: str) -> "str | None":
    """What the environment's interpreter prints for `code`, or None if it fails."""
    command = [str(VENV_PYTHON), "-c", code]
    try:
        answer = subprocess.run(command, env=venv_environ(), capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return answer.stdout.strip()


def venv_fault(stamp: "dict[str, object]") -> "str | None":
    """Why the existing environment cannot be used, or None."""
    found = ask_python("import pip, sys; print(sys.implementation.name, '%d.%d' % sys.version_info[:2])")
    if found != python_name():
        return f"has {found or 'no working Python with pip'}, not {python_name()}"
    root = stamp.get("root", str(ROOT))
    return None if root == str(ROOT) else f"was made for another folder ({root})"


def remove_venv() -> None:
    """Delete `.venv`, whether it is a folder, a file or a link."""
    if VENV.is_symlink() or VENV.is_file():
        VENV.unlink()
    elif VENV.exists():
        shutil.rmtree(str(VENV))


def make_venv() -> None:
    """Make an empty `.venv`."""
    say(f"making {VENV.name} with {python_name()}")
    # Inside a virtual environment sys.executable may be the one just removed.
    base = getattr(sys, "_base_executable", None) or sys.executable
    if subprocess.run([base, "-m", "venv", str(VENV)], stdout=sys.stderr).returncode != 0:
        remove_venv()
        raise SetupError(f"`{base} -m venv {VENV}` failed; the reason is above.")


def pip_install(*arguments: str) -> bool:
    """Run `pip install`, which reports to the terminal; False if it fails."""
    command = [str(VENV_PYTHON), "-m", "pip", "install", *arguments]
    return subprocess.run(command, cwd=str(ROOT), env=venv_environ(), stdout=sys.stderr).returncode == 0


def is_reachable(url: str) -> bool:
    """Whether `url` answers soon."""
    try:
        with urllib.request.urlopen(url, timeout=PROBE_TIMEOUT_S):  # noqa: S310
            return True
    except (OSError, ValueError):
        return False


def has_nvidia_driver() -> bool:
    """Whether this machine has an NVIDIA driver, and so can use a CUDA build of torch."""
    return bool(shutil.which("nvidia-smi")) or Path("/proc/driver/nvidia").exists()


def choose_torch_index() -> "tuple[str | None, str]":
    """The index to install torch from (None: pip's default) and the reason."""
    wish = os.environ.get("HOTLAP_TORCH", "")
    if wish not in ("", "cpu", "default"):
        raise SetupError(f"HOTLAP_TORCH is {wish!r}; it must be cpu or default.")
    if wish == "default":
        return None, "HOTLAP_TORCH=default"
    if not wish and not sys.platform.startswith("linux"):
        return None, "it has no CUDA on this platform"
    if not wish and has_nvidia_driver():
        return None, "NVIDIA driver found"
    if is_reachable(TORCH_CPU_INDEX + "/torch/"):
        return TORCH_CPU_INDEX, "HOTLAP_TORCH=cpu" if wish else "no NVIDIA driver found"
    if wish:
        raise SetupError(f"HOTLAP_TORCH=cpu: {TORCH_CPU_INDEX} does not answer. Go online or set HOTLAP_TORCH=default.")
    return None, f"no NVIDIA driver found, but {TORCH_CPU_INDEX} does not answer"


def install_torch() -> None:
    """Install torch first, so that the project finds its requirement met and keeps this build."""
    [pin] = re.findall(r"^torch==[^\s;#]+", CONSTRAINTS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    installed = ask_python("from importlib.metadata import version; print(version('torch'))") or ""
    if pin == "torch==" + installed.split("+")[0]:
        return
    index, reason = choose_torch_index()
    if not index and TORCH_CPU_INDEX in reason and install_torch_wheel(pin):
        return
    say(f"installing {pin}, {'the CPU build' if index else 'the default build of pip'} ({reason})")
    # The CPU index lacks the pinned versions of torch's dependencies: they come with the project.
    source = ("--no-deps", "--index-url", index) if index else ("-c", str(CONSTRAINTS))
    hashes = torch_hashes(pin, "cpu" if index else "default")
    if hashes and checks_hashes():
        if not install_checked_torch(pin, hashes, *(("--index-url", index) if index else ())):
            raise SetupError(
                f"pip could not install {pin} with a hash of {TORCH_HASHES.name}; its reason is above. {HASHES_ADVICE}"
            )
    elif not pip_install(*source, pin):
        if os.environ.get("HOTLAP_TORCH") == "cpu":
            raise SetupError(f"HOTLAP_TORCH=cpu: pip could not install {pin} from {index}; its reason is above.")
        if not may_drop_pins():
            raise SetupError(f"pip could not install {pin}; its reason is above. {PINS_ADVICE}")
        say(f"{pin} was not installed: hotlap's installation will choose a torch that pyproject.toml allows")


def torch_hashes(pin: str, build: str) -> "list[str]":
    """The hashes of torch's builds for this platform and Python, if that of `build` is among them; else says so."""
    builds = torch_builds(pin)
    if build not in builds and checks_hashes():
        say(f"{pin}: its {build} build for {hash_file().stem} has no known hash, so it is not checked")
    return sorted(builds.values()) if build in builds else []


def torch_builds(pin: str) -> "dict[str, str]":
    """The known hashes of torch's builds, `cpu` and `default`, for this platform and Python."""
    try:
        known = json.loads(TORCH_HASHES.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known.get("hashes", {}).get(hash_file().stem, {}) if known.get("pin") == pin else {}


def install_torch_wheel(pin: str) -> bool:
    """Install the CPU build from a file in a folder of pip's `find-links`, if there is one with the known hash."""
    known = torch_builds(pin).get("cpu")
    is_installed = known is not None and checks_hashes() and install_checked_torch(pin, [known], "--no-index", "-qqq")
    if is_installed:
        say(f"installed {pin}, the CPU build, from a file of pip's find-links")
    return is_installed


def install_checked_torch(pin: str, hashes: "list[str]", *source: str) -> bool:
    """Install torch alone from `source`, if it has one of these SHA-256 hashes; False if not."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "torch.txt"
        path.write_text(" ".join([pin, *("--hash=sha256:" + value for value in hashes)]) + "\n", encoding="utf-8")
        return pip_install("--require-hashes", "--no-deps", *source, "-r", str(path))


def checks_hashes() -> bool:
    """Whether packages are checked against their hashes."""
    return os.environ.get("HOTLAP_HASHES") != "off"


def may_drop_pins() -> bool:
    """Whether the user asks for other versions where the pinned ones cannot be installed."""
    return os.environ.get("HOTLAP_PINS") == "off"


def hash_file() -> Path:
    """The file with the pinned packages' hashes for this platform and Python; tools/make_hashes.py writes it."""
    system = f"{sys.platform}-{platform.machine().lower()}-{sys.implementation.name}"
    return ROOT / "hashes" / "{}{}{}.txt".format(system, *sys.version_info[:2])


def install_hashed() -> None:
    """Install the pinned packages, each checked against its SHA-256 hash, where the hashes for this platform are known.

    torch is not among them: its build depends on the machine (`install_torch`).
    """
    path = hash_file()
    if not checks_hashes() or not path.exists():
        say(f"packages are pinned, but not checked against hashes ({path.name}: not available or switched off)")
        return
    say(f"installing the packages of {path.name}, each checked against its hash")
    if not pip_install("--require-hashes", "--no-deps", "-r", str(path)):
        raise SetupError(f"pip could not install {path.name}; its reason is above. {HASHES_ADVICE}")


def install_project() -> None:
    """Install Hotlap, editable, with everything the tests use."""
    install_build_tools()
    install_hashed()
    say("installing hotlap and its dependencies")
    # Without isolation: a build in an environment of its own would fetch the newest setuptools, unchecked.
    if pip_install("-c", str(CONSTRAINTS), "--no-build-isolation", "-e", ".[dev]"):
        return
    if not may_drop_pins():
        raise SetupError(f"pip could not install hotlap with its pinned versions; its reason is above. {PINS_ADVICE}")
    say(f"that failed: trying the bounds of pyproject.toml without the pins of {CONSTRAINTS.name}, which is untested")
    if not pip_install("-e", ".[dev]"):
        raise SetupError("pip could not install hotlap; its reason is above. If offline, go online and run this again.")


def install_build_tools() -> None:
    """Install what builds need: setuptools and wheel for Hotlap itself, swig for Box2D."""
    if not checks_hashes():
        if not pip_install("-c", str(CONSTRAINTS), "setuptools", "swig", "wheel") and not may_drop_pins():
            raise SetupError(f"pip could not install setuptools, swig and wheel; its reason is above. {PINS_ADVICE}")
    elif not pip_install("--require-hashes", "--no-deps", "-r", str(TOOL_HASHES)):
        raise SetupError(f"pip could not install {TOOL_HASHES.name}; its reason is above. {HASHES_ADVICE}")


def install_box2d() -> bool:
    """Install Box2D for Gymnasium's LunarLander from a wheel, or else build it; False if neither works."""
    if ask_python("import Box2D") is not None:
        return True
    say("installing Box2D for LunarLander")
    pins = ("-c", str(CONSTRAINTS))
    if not pip_install(*pins, "--only-binary=box2d,box2d-py", "gymnasium[box2d]"):
        say("no Box2D wheel for this machine: building it, which takes a minute and needs a C++ compiler")
        # Without isolation, so that the build finds the swig of `install_build_tools`.
        if checks_hashes():
            pip_install("--require-hashes", "--no-deps", "--no-build-isolation", "-r", str(BUILD_HASHES))
        else:
            pip_install(*pins, "--no-build-isolation", "box2d-py")
        pip_install(*pins, "pygame-ce")
    if ask_python("import Box2D") is not None:
        return True
    say("Box2D is not available here: LunarLander tests use EnvPool or are skipped")
    return False


def ensure_environment(verb: str) -> None:
    """Bring `.venv` up to date for `verb`. Offline and without pip if it already is."""
    stamp = read_stamp()
    fault = venv_fault(stamp) if VENV.exists() or VENV.is_symlink() else None
    if fault:
        say(f"{VENV.name} {fault}: making a new one")
        remove_venv()
    if is_current(stamp) and not fault:
        done = dict(stamp)
    else:
        if not VENV.exists():
            make_venv()
        elif STAMP.exists():
            # An interrupted installation must leave no stamp.
            STAMP.unlink()
        install_torch()
        install_project()
        done = expected_stamp()
    if "box2d" not in done or (verb == "setup" and not done["box2d"]):
        done["box2d"] = install_box2d()
    if verb == "bench" and not done.get("peers"):
        done["peers"] = True
        say("installing the simulators that the benchmark compares with")
        if not pip_install("-c", str(CONSTRAINTS), "-e", ".[peers]"):
            say("not all of them are available here: the benchmark lists the missing ones")
    if done != stamp:
        STAMP.write_text(json.dumps(done, indent=2) + "\n", encoding="utf-8")


def inside_root(name: str) -> Path:
    """The path of `name` below the project; anything else must never be removed."""
    path = Path(os.path.normpath(str(ROOT / name)))
    if ROOT not in path.parents:
        raise SetupError(f"{name!r} is not a folder below {ROOT}, so nothing is removed.")
    return path


def clean() -> None:
    """Remove what can be made again; `results/` and `out/` hold the user's work and stay."""
    caches = [inside_root(name) for name in CACHES]
    remove_venv()
    for path in caches:
        shutil.rmtree(str(path), ignore_errors=True)
    for top in ("src", "tests", "tools", "benchmarks"):
        for folder in (ROOT / top).rglob("__pycache__"):
            shutil.rmtree(str(folder), ignore_errors=True)


def run(command: "list[str]") -> int:
    """Run the environment's python with `command`; returns its exit status as a shell would."""
    process = subprocess.Popen([str(VENV_PYTHON), *command], cwd=str(ROOT), env=venv_environ())
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
            say(f"{VENV.name} is ready")
        return run_verb(verb, rest)
    except (SetupError, OSError) as error:
        say(str(error))
        return CANNOT_RUN
    except KeyboardInterrupt:
        say("interrupted; run the same command again to continue")
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
