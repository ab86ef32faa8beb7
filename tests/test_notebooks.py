"""The notebooks run from top to bottom, at small size, and are clean files."""

import ast
import json
import re
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest

NOTEBOOKS = Path(__file__).resolve().parent.parent / "docs" / "notebooks"
# What each prints last, and the parameters that make it small.
SMALL: dict[str, tuple[str, dict[str, Any]]] = {
    "first_lap": (r"T\d.*: [+-]\d\.\d\d s", {"SECONDS": 1.0}),
    "racing_rivals": (
        r"\d+ ticks with contact",
        {"DRIVERS": ["champion", "generalist"], "LAPS": 1, "RACES": 1, "SECONDS": 1.0},
    ),
    "tensor_ppo": (
        r"0 of 100 cars drove a lap, 0 of them cleanly",
        {"NUM_CARS": 8, "STEPS": 8, "UPDATES": 10, "MAX_LAP_S": 0.5},
    ),
}


def read(name: str) -> dict[str, Any]:
    return json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))


def code_cells(name: str) -> list[dict[str, Any]]:
    return [cell for cell in read(name)["cells"] if cell["cell_type"] == "code"]


def test_all_notebooks_are_known_here():
    assert {path.stem for path in NOTEBOOKS.glob("*.ipynb")} == set(SMALL)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("name", SMALL)
def test_it_runs(name, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    last_line, small = SMALL[name]
    names: dict[str, Any] = {"__name__": "__main__"}
    num_parameters = 0
    for number, cell in enumerate(code_cells(name)):
        exec(compile("".join(cell["source"]), f"{name}.ipynb, code cell {number}", "exec"), names)
        if "parameters" in cell["metadata"].get("tags", []):
            num_parameters += 1
            assert set(small) <= set(names)
            names |= small
    plt.close("all")
    assert num_parameters == 1
    assert re.fullmatch(last_line, capsys.readouterr().out.splitlines()[-1])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", SMALL)
def test_it_opens_in_colab_and_holds_no_output(name):
    notebook = read(name)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    assert notebook["cells"][0]["source"][0].startswith("# ")
    first = "".join(code_cells(name)[0]["source"])
    assert '"pip", "install"' in first
    assert "hotlap-*.whl" in first
    for cell in code_cells(name):
        assert (cell["outputs"], cell["execution_count"]) == ([], None)
        ast.parse("".join(cell["source"]))  # no magic commands: the cells are plain Python


def test_the_first_cell_installs_the_uploaded_wheel(tmp_path, monkeypatch):
    commands = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setattr("subprocess.run", lambda command, check: commands.append(command[1:]))
    source = "".join(code_cells("tensor_ppo")[0]["source"])
    exec(source, {})
    (tmp_path / "hotlap-0.1.0-py3-none-any.whl").touch()
    exec(source, {})
    wanted = ["-m", "pip", "install", "-q"]
    assert commands == [[*wanted, "hotlap[train]"], [*wanted, "hotlap-0.1.0-py3-none-any.whl[train]"]]
