"""Builds the documentation site from README, docs/ and experiments/ into `docs/_build/html`.

usage: make docs     (or .venv/bin/python tools/build_docs.py [FOLDER], where Sphinx, MyST and Furo are installed)

The pages keep their places in the project, so that their links work on GitHub, in an editor and on the site. Added are
the notebooks as pages, the reference, which is written from docstrings and `--help`, and the page of `hotlap site` as a
live demo. A warning of Sphinx is an error, and so is a link inside the site that leads nowhere. Nothing is fetched.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import docs_reference
from docs_links import broken_links, foreign_sources
from docs_notebooks import notebook_page
from hotlap.web.site import write_site

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("*.md", "docs/*.md", "docs/pictures/*", "experiments/*.md", "src/hotlap/models/shipped/*.md")
# What pages link to, for download.
FILES = (
    "CITATION.cff",
    "benchmarks/results/*",
    "docs/notebooks/*.ipynb",
    "examples/javascript/*.mjs",
    "examples/python/*.py",
    "src/hotlap/benchmark/data/protocol-*.json",
    "src/hotlap/runs/recipes/*.toml",
)

DEMO = """\
# Live demo

The page of `hotlap play` as static files (`hotlap site`): watch the drivers that ship and race them. Nothing is sent
anywhere; what needs a server, such as training and the common board, is missing.

```{raw} html
<iframe src="../demo/index.html" title="Hotlap" style="width: 100%; height: 75vh; border: 0"></iframe>
<p><a href="../demo/index.html">Open it in the whole window</a></p>
```
"""
FRONT = """\
<!doctype html>
<meta charset="utf-8">
<title>Hotlap</title>
<meta http-equiv="refresh" content="0; url=docs/index.html">
<a href="docs/index.html">Hotlap</a>
"""


def stage(folder: Path) -> None:
    """Copy the pages and what they show, and write those that are generated."""
    for pattern in (*PAGES, *FILES):
        for source in sorted(ROOT.glob(pattern)):
            target = folder / source.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    shutil.copyfile(ROOT / "docs" / "conf.py", folder / "conf.py")
    # The records are in the menu below their index.
    index = folder / "experiments" / "README.md"
    records = sorted(path.stem for path in (folder / "experiments").glob("20*.md"))
    index.write_text(index.read_text("utf-8") + toctree(records), encoding="utf-8")
    (folder / "docs" / "demo.md").write_text(DEMO, encoding="utf-8")
    (folder / "docs" / "reference").mkdir()
    for name, text in docs_reference.pages().items():
        (folder / "docs" / "reference" / f"{name}.md").write_text(text, encoding="utf-8")
    for notebook in (folder / "docs" / "notebooks").glob("*.ipynb"):
        notebook.with_suffix(".md").write_text(notebook_page(notebook), encoding="utf-8")
    extra = folder / "extra"
    extra.mkdir()
    (extra / "index.html").write_text(FRONT, encoding="utf-8")
    write_site(extra / "demo")


def toctree(names: list[str]) -> str:
    """A hidden list of pages for the menu."""
    return "\n```{toctree}\n:hidden:\n\n" + "\n".join(names) + "\n```\n"


def build(out: Path) -> list[str]:
    """Build the site into `out`; returns what is wrong with it."""
    shutil.rmtree(out, ignore_errors=True)
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "source"
        source.mkdir()
        stage(source)
        # -W --keep-going: every warning is shown, and any is an error.
        command = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q", str(source), str(out)]
        doctrees = ["-d", str(Path(scratch) / "doctrees")]
        if subprocess.run([*command, *doctrees], env=dict(os.environ), check=False).returncode != 0:
            return ["Sphinx has warnings; they are above"]
    return [*broken_links(out), *foreign_sources(out)]


def main(arguments: list[str]) -> None:
    """Build, check and say where it is."""
    out = Path(arguments[0]) if arguments else ROOT / "docs" / "_build" / "html"
    if faults := build(out):
        raise SystemExit("\n".join(faults))
    print(f"{len(list(out.rglob('*.html')))} pages without a warning or a broken link: {out / 'index.html'}")


if __name__ == "__main__":
    main(sys.argv[1:])
