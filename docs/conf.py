"""Sphinx's settings for the documentation site; `tools/build_docs.py` copies it beside the pages and runs Sphinx."""

from hotlap import __version__

project = "Hotlap"
author = "The Hotlap authors"
copyright = author  # noqa: A001 (Sphinx's name)
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown"}
root_doc = "docs/index"
nitpicky = False

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
# Prompts and outputs are shown as they are.
highlight_language = "none"
suppress_warnings = ["misc.highlighting_failure"]

autodoc_member_order = "bysource"
autodoc_typehints = "description"
default_role = "code"

html_theme = "furo"
html_title = f"Hotlap {release}"
html_show_sphinx = False
html_copy_source = False
html_extra_path = ["extra"]
