"""Sets up `.venv` when it has to and runs one verb in it: `python tools/bootstrap.py VERB [args]`.

Standard library only. The file has to parse on old interpreters, which get a plain sentence instead of a traceback:
hence the quoted annotations.
"""

import hashlib
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

OLDEST = (3, 10)
NEWEST = (3, 13)

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / "bootstrap-stamp.json"
LOG = VENV / "bootstrap.log"
CONSTRAINTS = ROOT / "constraints.txt"
# What decides about the content of the environment: a change in any of these means another look by pip.
INPUTS = (ROOT / "pyproject.toml", CONSTRAINTS, Path(__file__).resolve())

LITTER = ("build", "dist", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", "src/hotlap.egg-info")
LOG_LINES_SHOWN = 12
CANNOT_RUN = 2
INTERRUPTED = 130

# Each verb is a list of commands for the environment's python; further arguments go to the last one.
VERBS = {
    "train": [["-m", "hotlap", "train", "--recipe", "racer-ppo", "--overwrite", "--report"]],
    "test": [["-m", "pytest"]],
    "check": [
        ["-m", "ruff", "format", "--check"],
        ["-m", "ruff", "check"],
        ["-m", "mypy"],
        ["-m", "pytest", "-m", "not slow and not bench", "-x", "-q"],
    ],
    "slow": [["-m", "pytest", "-m", "slow", "--timeout", "0"]],
    "bench": [
        ["-m", "hotlap", "bench", "sim"],
        ["-m", "hotlap", "bench", "peers"],
        ["-m", "pytest", "-m", "bench", "--timeout", "0"],
    ],
    "setup": [],
    "clean": [],
}  # type: dict[str, list[list[str]]]

HELP = """usage: python tools/bootstrap.py VERB [args]

  train   teach a car to race on track-01 (minutes), measure it, and write a report
  test    the fast tests
  check   format, lint, types, then the fast tests
  slow    the tests that take minutes: learning, millions of ticks
  bench   install what we compare with, then measure
  setup   only make .venv; tries again what was optional and failed before
  clean   remove .venv and caches; results stay

Arguments after the verb go to its last command, e.g. `python tools/bootstrap.py test tests/sim -x`."""


class SetupError(Exception):
    """Something the user has to put right; its text is all that is printed."""


class PipError(Exception):
    """A pip call that failed; carries what pip said."""


def say(text: str) -> None:
    """Print progress at once and on stderr: stdout belongs to the verb."""
    print("[bootstrap] " + text, file=sys.stderr, flush=True)


# --- is this Python any good ---


def version_complaint(version: "tuple[int, int]", verb: str) -> "str | None":
    """What is wrong with a Python of this (major, minor) version, or None."""
    if OLDEST <= version <= NEWEST:
        return None
    text = "Hotlap needs Python {}.{} to {}.{}; this is {}.{}.".format(*OLDEST, *NEWEST, *version)
    for minor in range(NEWEST[1], OLDEST[1] - 1, -1):
        name = f"python3.{minor}"
        if shutil.which(name):
            return f"{text} Yours to use: `make {verb} PYTHON={name}` or `{name} tools/bootstrap.py {verb}`."
    return text + " Install one of those and run this again with it."


def venv_complaint() -> "str | None":
    """What keeps this Python from making virtual environments, or None. Debian ships `ensurepip` apart."""
    missing = [name for name in ("venv", "ensurepip") if importlib.util.find_spec(name) is None]
    if not missing:
        return None
    package = "python{}.{}-venv".format(*sys.version_info[:2])
    return (
        f"this Python has no {' and no '.join(missing)} module, so it cannot make {VENV.name}. "
        f"On Debian and Ubuntu `apt install {package}` brings it; then run this again."
    )


# --- the stamp ---


def inputs_digest() -> str:
    """Digest of all that decides what has to be installed."""
    digest = hashlib.sha256()
    for path in INPUTS:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def read_stamp() -> "dict[str, object]":
    """The last finished installation, or {} where there is none that can be read."""
    try:
        stamp = json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def write_stamp(stamp: "dict[str, object]") -> None:
    """Replace the stamp in one move, so that an interruption leaves the old one or none."""
    partial = STAMP.with_suffix(".partial")
    partial.write_text(json.dumps(stamp, indent=2) + "\n", encoding="utf-8")
    partial.replace(STAMP)


def python_name() -> str:
    """The running interpreter's kind, e.g. `cpython 3.11`: a newer patch release keeps the environment good."""
    return "{} {}.{}".format(sys.implementation.name, *sys.version_info[:2])


def fresh_stamp() -> "dict[str, object]":
    """What the stamp says when nothing needs doing; optional parts come on top."""
    return {"digest": inputs_digest(), "python": python_name(), "root": str(ROOT)}


def is_current(stamp: "dict[str, object]") -> bool:
    """Whether the environment was finished from these very inputs, here, with this Python."""
    return all(stamp.get(key) == value for key, value in fresh_stamp().items())


# --- the environment ---


def venv_python(venv: Path) -> Path:
    """Where an environment keeps its interpreter."""
    return venv / "Scripts" / "python.exe" if os.name == "nt" else venv / "bin" / "python"


def venv_environ() -> "dict[str, str]":
    """The process environment with `.venv` activated and pip kept quiet and to itself."""
    environ = dict(os.environ)
    environ.pop("PYTHONHOME", None)
    environ["VIRTUAL_ENV"] = str(VENV)
    environ["PATH"] = str(venv_python(VENV).parent) + os.pathsep + environ.get("PATH", "")
    environ.update(PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_NO_INPUT="1", PIP_USER="0")
    return environ


def ask_python(code: str) -> "str | None":
    """What the environment's interpreter prints for `code`, or None where it cannot run it."""
    try:
        answer = subprocess.run(
            [str(venv_python(VENV)), "-c", code],
            env=venv_environ(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return answer.stdout.strip()


def venv_fault(stamp: "dict[str, object]") -> "str | None":
    """Why the environment that is there cannot be used or added to, or None."""
    found = ask_python("import sys; print(sys.implementation.name, '%d.%d' % sys.version_info[:2])")
    if found is None:
        return "has no working interpreter"
    if found != python_name():
        return f"is of {found}, not {python_name()}"
    if stamp.get("root", str(ROOT)) != str(ROOT):
        return "was made for another folder ({})".format(stamp["root"])
    return None


def remove_venv() -> None:
    """Delete `.venv`, whatever it is."""
    try:
        if VENV.is_symlink() or VENV.is_file():
            VENV.unlink()
        elif VENV.exists():
            shutil.rmtree(str(VENV))
    except OSError as error:
        raise SetupError(
            f"cannot remove {VENV}: {error.strerror}. Leave or deactivate it and run this again."
        ) from None


def make_venv() -> None:
    """Make an empty `.venv`."""
    complaint = venv_complaint()
    if complaint:
        raise SetupError(complaint)
    say(f"making {VENV.name} with {python_name()}")
    # Inside a virtual environment sys.executable may be the very one just removed.
    base = getattr(sys, "_base_executable", None) or sys.executable
    made = subprocess.run([base, "-m", "venv", str(VENV)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if made.returncode != 0:
        remove_venv()
        words = " ".join(made.stdout.split())[-300:]
        raise SetupError(f"`{base} -m venv {VENV}` failed: {words or 'no reason given'}")


# --- pip ---


def progress_word(line: str) -> "str | None":
    """What a line of pip's output tells somebody who waits, or None for the many that tell nothing."""
    line = line.strip()
    big_download = re.match(r"Downloading (?:\S*/)?(\S+?\.(?:whl|tar\.gz|zip))\S* \(([\d.]+ [MG]B)\)", line)
    if big_download:
        return "downloading {} ({})".format(*big_download.groups())
    if line.startswith("Building wheel for ") and line.endswith("started"):
        return "building " + line.split()[3]
    if line.startswith("Installing collected packages:"):
        count = line.count(",") + 1
        return f"unpacking {count} package{'s' if count > 1 else ''}"
    return None


def pip_install(*arguments: str) -> None:
    """`pip install`: all its words into the log, a few to the user. PipError when it fails."""
    command = [str(venv_python(VENV)), "-m", "pip", "install", *arguments]
    said = []
    with LOG.open("a", encoding="utf-8") as log:
        log.write("\n$ {}\n".format(" ".join(command)))
        process = subprocess.Popen(
            command,
            cwd=str(ROOT),
            env=venv_environ(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        )
        try:
            for line in process.stdout or ():
                log.write(line)
                said.append(line)
                word = progress_word(line)
                if word:
                    say("  " + word)
            status = process.wait()
        except BaseException:
            process.terminate()
            process.wait()
            raise
    if status != 0:
        raise PipError("".join(said))


def is_network_failure(pip_said: str) -> bool:
    """Whether pip failed because nobody answered, rather than because there is no such package."""
    signs = (
        "NewConnectionError",
        "ConnectTimeoutError",
        "ReadTimeoutError",
        "NameResolutionError",
        "ProxyError",
        "SSLError",
        "Max retries exceeded",
        "Temporary failure in name resolution",
        "Could not fetch URL",
        "Connection broken",
        "ConnectionResetError",
    )
    return any(sign in pip_said for sign in signs)


def give_up(what: str, error: PipError) -> SetupError:
    """The error for a part that cannot be done without; shows the end of what pip said where that helps."""
    if is_network_failure(str(error)):
        return SetupError(f"no network: {what} could not be fetched. Go online and run this again. Log: {LOG}")
    lines = [line.rstrip() for line in str(error).splitlines() if line.strip()]
    for line in lines[-LOG_LINES_SHOWN:]:
        print("    " + line, file=sys.stderr)
    return SetupError(f"{what} could not be installed; the reason is above, the whole log in {LOG}")


def torch_pin(constraints: str) -> str:
    """The `torch==…` line of the constraints file."""
    found = re.search(r"^torch==[^\s;#]+", constraints, flags=re.MULTILINE)
    if not found:
        raise SetupError(f"{CONSTRAINTS.name} has no line `torch==VERSION`; it must pin torch.")
    return found.group()


# --- what gets installed ---


def install_torch() -> Path:
    """Torch alone and first; returns the constraints file for everything after it.

    A CPU build at hand satisfies the pin; an open range would go for a newer torch with gigabytes of CUDA packages.
    """
    text = CONSTRAINTS.read_text(encoding="utf-8")
    pin = torch_pin(text)
    say(f"installing {pin} (large: the first time takes minutes)")
    try:
        pip_install("-c", str(CONSTRAINTS), pin)
    except PipError as error:
        if is_network_failure(str(error)):
            raise give_up(pin, error) from None
    else:
        return CONSTRAINTS
    say(f"{pin} is not to be had for this machine: taking the newest that pyproject.toml allows, which is untested")
    loose = VENV / "constraints-without-torch.txt"
    loose.write_text("".join(line for line in text.splitlines(True) if line.strip() != pin), encoding="utf-8")
    return loose


def install_project(constraints: Path) -> None:
    """Hotlap itself, editable, with all that the tests use."""
    say("installing hotlap and what it needs")
    try:
        pip_install("-c", str(constraints), "-e", ".[dev]")
    except PipError as error:
        if is_network_failure(str(error)):
            raise give_up("what hotlap needs", error) from None
    else:
        return
    say(f"some pins of {CONSTRAINTS.name} are not to be had for this machine: keeping to pyproject.toml's bounds alone")
    try:
        pip_install("-e", ".[dev]")
    except PipError as error:
        raise give_up("hotlap", error) from None


def has_box2d() -> bool:
    """Whether Gymnasium's own LunarLander can run."""
    return ask_python("import Box2D") is not None


def install_box2d(constraints: Path) -> bool:
    """Box2D for Gymnasium's LunarLander, from a wheel or else built; False where neither works."""
    if has_box2d():
        return True
    say("installing Box2D for LunarLander")
    with_constraints = ("-c", str(constraints))
    try:
        pip_install(*with_constraints, "--only-binary=box2d,box2d-py", "gymnasium[box2d]")
    except PipError as error:
        if not is_network_failure(str(error)):
            build_box2d(with_constraints)
    if has_box2d():
        return True
    say(f"no Box2D here: LunarLander tests will use EnvPool or be skipped (why: {LOG})")
    return False


def build_box2d(with_constraints: "tuple[str, ...]") -> None:
    """Compile Box2D: no wheel exists for arm64 Linux. Needs a C++ compiler; failing is allowed."""
    say("  no wheel for this machine: building it, about a minute")
    try:
        pip_install(*with_constraints, "swig", "setuptools", "wheel")
        # Without isolation, so that its build finds the swig just put on the PATH.
        pip_install(*with_constraints, "--no-build-isolation", "box2d-py", "pygame-ce")
    except PipError:
        say("  the build failed (it needs a C++ compiler and Python's headers)")


def peer_requirements() -> "list[str]":
    """The `peers` extra, one requirement each, as the installed project declares it."""
    answer = ask_python("import importlib.metadata as m; print('\\n'.join(m.requires('hotlap') or []))")
    peers = []
    for line in (answer or "").splitlines():
        plain, found = re.subn(r"\s*(?:;|and)\s*extra == [\"']peers[\"']\s*$", "", line)
        if found:
            peers.append(plain)
    return peers


def install_peers() -> None:
    """What the benchmark compares with, one by one: any of them may be missing."""
    for peer in peer_requirements():
        say(f"installing {peer} to compare with")
        try:
            pip_install("-c", str(CONSTRAINTS), peer)
        except PipError:
            say(f"  {peer} is not to be had here; the benchmark will list it as absent (why: {LOG})")


def install_all() -> "dict[str, object]":
    """Everything but the peers, into a new or an outdated `.venv`; returns the stamp, which is already written."""
    started_s = time.monotonic()
    if VENV.exists() and ask_python("import pip") is None:
        say(f"{VENV.name} has no working pip: making it anew")
        remove_venv()
    if not VENV.exists():
        make_venv()
    elif STAMP.exists():
        # From here on an interruption must find no stamp.
        STAMP.unlink()
    constraints = install_torch()
    install_project(constraints)
    stamp = dict(fresh_stamp(), box2d=install_box2d(constraints), peers=False)
    write_stamp(stamp)
    say(f"installed in {time.monotonic() - started_s:.0f} s")
    return stamp


def ensure_environment(verb: str) -> None:
    """Bring `.venv` up to date for `verb`; without pip and offline where it already is."""
    stamp = read_stamp()
    fault = venv_fault(stamp) if VENV.exists() or VENV.is_symlink() else None
    if fault:
        say(f"{VENV.name} {fault}: making it anew")
        remove_venv()
        stamp = {}
    if not is_current(stamp):
        stamp = install_all()
    elif verb == "setup" and not stamp.get("box2d"):
        stamp = dict(stamp, box2d=install_box2d(CONSTRAINTS))
        write_stamp(stamp)
    if verb == "bench" and not stamp.get("peers"):
        install_peers()
        write_stamp(dict(stamp, peers=True))


# --- verbs ---


def clean() -> None:
    """Remove what can be made again; `results/` and `out/` hold a user's work and stay."""
    remove_venv()
    for name in LITTER:
        shutil.rmtree(str(ROOT / name), ignore_errors=True)
    for top in ("src", "tests", "tools", "benchmarks"):
        for folder in (ROOT / top).rglob("__pycache__"):
            shutil.rmtree(str(folder), ignore_errors=True)


def run(command: "list[str]") -> int:
    """Run the environment's python with `command`; its exit status as a shell gives it."""
    process = subprocess.Popen([str(venv_python(VENV)), *command], cwd=str(ROOT), env=venv_environ())
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
    """Run a verb's commands in order, up to the first that fails."""
    commands = VERBS[verb]
    for number, command in enumerate(commands, start=1):
        is_last = number == len(commands)
        if len(commands) > 1:
            say("python " + " ".join(command))
        status = run(command + arguments if is_last else command)
        if status != 0:
            return status
    return 0


def main(arguments: "list[str]") -> int:
    """Do what the command line asks; returns the exit status."""
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(HELP)
        return 0 if arguments else CANNOT_RUN
    verb, rest = arguments[0], arguments[1:]
    if verb not in VERBS:
        say(f"there is no verb {verb!r}; the verbs are {', '.join(VERBS)}.")
        return CANNOT_RUN
    try:
        if verb == "clean":
            clean()
            return 0
        complaint = version_complaint((sys.version_info[0], sys.version_info[1]), verb)
        if complaint:
            raise SetupError(complaint)
        ensure_environment(verb)
        if verb == "setup":
            say(f"{VENV.name} is ready")
        return run_verb(verb, rest)
    except SetupError as error:
        say(str(error))
        return CANNOT_RUN
    except OSError as error:
        say(f"{error.filename or 'the system'}: {error.strerror or error}")
        return CANNOT_RUN
    except KeyboardInterrupt:
        say("interrupted; the next call goes on from here")
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
