"""Notebooks as pages of the documentation site: their text and code, with a link to the file itself."""

import json
from pathlib import Path

INSTALL = "importlib.util.find_spec"  # in the cell that installs Hotlap, which pages leave out
HOW = (
    "This page is a notebook: {{download}}`{name} <{name}>`. In Colab, open it with *File, Upload notebook*, upload "
    "the wheel that `make wheel` builds, and run the cells from the first one on."
)


def notebook_page(notebook: Path) -> str:
    """The page of a notebook, in MyST's Markdown."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    title, *rest = ("".join(cell["source"]) for cell in cells)
    parts = [title, HOW.format(name=notebook.name)]
    for cell, text in zip(cells[1:], rest, strict=True):
        if cell["cell_type"] == "markdown":
            parts.append(text)
        elif INSTALL not in text:
            parts.append(f"```python\n{text}\n```")
    return "\n\n".join(parts) + "\n"
