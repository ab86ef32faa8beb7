"""What is installed into `.venv`: torch's build for this machine, the pinned packages, the project, and Box2D."""

# Standard library only, and any Python must be able to parse this file: see bootstrap.py.

import json
import os
import platform
import re
import shutil
import sys
import tempfile
import urllib.request
from pathlib import Path

import bootstrap_venv as venv
from bootstrap_venv import SetupError, say

CONSTRAINTS = venv.ROOT / "constraints.txt"
# Hashes of what builds need (setuptools, swig, wheel), of what is built (Box2D), and of torch's builds.
TOOL_HASHES = venv.ROOT / "hashes" / "build-tools.txt"
BUILD_HASHES = venv.ROOT / "hashes" / "box2d-build.txt"
TORCH_HASHES = venv.ROOT / "hashes" / "torch.json"

# On x86-64 Linux pip's default torch includes gigabytes of CUDA libraries; this index has builds without them.
TORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"
PROBE_TIMEOUT_S = 5.0

HASHES_ADVICE = "Go online, or, if you trust your package index although it has other files, set HOTLAP_HASHES=off."
PINS_ADVICE = "Go online and run this again, or set HOTLAP_PINS=off for versions that are untested."


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
    installed = venv.ask_python("from importlib.metadata import version; print(version('torch'))") or ""
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
    elif not venv.pip_install(*source, pin):
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
        return venv.pip_install("--require-hashes", "--no-deps", *source, "-r", str(path))


def checks_hashes() -> bool:
    """Whether packages are checked against their hashes."""
    return os.environ.get("HOTLAP_HASHES") != "off"


def may_drop_pins() -> bool:
    """Whether the user asks for other versions where the pinned ones cannot be installed."""
    return os.environ.get("HOTLAP_PINS") == "off"


def hash_file() -> Path:
    """The file with the pinned packages' hashes for this platform and Python; tools/make_hashes.py writes it."""
    system = f"{sys.platform}-{platform.machine().lower()}-{sys.implementation.name}"
    return venv.ROOT / "hashes" / "{}{}{}.txt".format(system, *sys.version_info[:2])


def install_hashed() -> None:
    """Install the pinned packages, each checked against its SHA-256 hash, where the hashes for this platform are known.

    torch is not among them: its build depends on the machine (`install_torch`).
    """
    path = hash_file()
    if not checks_hashes() or not path.exists():
        say(f"packages are pinned, but not checked against hashes ({path.name}: not available or switched off)")
        return
    say(f"installing the packages of {path.name}, each checked against its hash")
    if not venv.pip_install("--require-hashes", "--no-deps", "-r", str(path)):
        raise SetupError(f"pip could not install {path.name}; its reason is above. {HASHES_ADVICE}")


def install_project() -> None:
    """Install Hotlap, editable, with everything the tests use."""
    install_build_tools()
    install_hashed()
    say("installing hotlap and its dependencies")
    # Without isolation: a build in an environment of its own would fetch the newest setuptools, unchecked.
    if venv.pip_install("-c", str(CONSTRAINTS), "--no-build-isolation", "-e", ".[dev]"):
        return
    if not may_drop_pins():
        raise SetupError(f"pip could not install hotlap with its pinned versions; its reason is above. {PINS_ADVICE}")
    say(f"that failed: trying the bounds of pyproject.toml without the pins of {CONSTRAINTS.name}, which is untested")
    if not venv.pip_install("-e", ".[dev]"):
        raise SetupError("pip could not install hotlap; its reason is above. If offline, go online and run this again.")


def install_build_tools() -> None:
    """Install what builds need: setuptools and wheel for Hotlap itself, swig for Box2D."""
    if not checks_hashes():
        if not venv.pip_install("-c", str(CONSTRAINTS), "setuptools", "swig", "wheel") and not may_drop_pins():
            raise SetupError(f"pip could not install setuptools, swig and wheel; its reason is above. {PINS_ADVICE}")
    elif not venv.pip_install("--require-hashes", "--no-deps", "-r", str(TOOL_HASHES)):
        raise SetupError(f"pip could not install {TOOL_HASHES.name}; its reason is above. {HASHES_ADVICE}")


def install_box2d() -> bool:
    """Install Box2D for Gymnasium's LunarLander from a wheel, or else build it; False if neither works."""
    if venv.ask_python("import Box2D") is not None:
        return True
    say("installing Box2D for LunarLander")
    pins = ("-c", str(CONSTRAINTS))
    if not venv.pip_install(*pins, "--only-binary=box2d,box2d-py", "gymnasium[box2d]"):
        say("no Box2D wheel for this machine: building it, which takes a minute and needs a C++ compiler")
        # Without isolation, so that the build finds the swig of `install_build_tools`.
        if checks_hashes():
            venv.pip_install("--require-hashes", "--no-deps", "--no-build-isolation", "-r", str(BUILD_HASHES))
        else:
            venv.pip_install(*pins, "--no-build-isolation", "box2d-py")
        venv.pip_install(*pins, "pygame-ce")
    if venv.ask_python("import Box2D") is not None:
        return True
    say("Box2D is not available here: LunarLander tests use EnvPool or are skipped")
    return False
