"""The pictures of the page in the documentation.

`HOTLAP_PICTURES=docs/pictures pytest --slow tests/web/test_static_pictures.py` writes them anew.
"""

import os
from pathlib import Path

import pytest
from PIL import Image

from web.test_static_page import KEY_DRIVER
from web.test_static_rivals import line_up

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

# File name, address, and what is done before the picture is taken.
PICTURES = {
    "page-watch": ("?driver=champion#watch", ""),
    "page-race": ("?driver=recorded#race", ""),
    "page-rivals": ("#race", ""),
    "page-learn": ("#learn", ""),
    "page-board": ("#board", ""),
}
MIN_COLOURS = 200


@pytest.mark.parametrize("name", PICTURES)
def test_a_view_is_pictured(static_page, browser, tmp_path, name):
    address, before = PICTURES[name]
    page = browser.open(static_page.url + address, is_dark=name != "page-board")
    page.wait("hotlap.state().message")
    if before:
        page.evaluate(f"void ({before})")
    if name == "page-watch":
        page.evaluate("void (hotlap.app.stage.showRays = true, hotlap.app.stage.bySpeed = true, hotlap.app.tools())")
        page.wait("hotlap.state().tick > 700", 60)
    elif name == "page-race":
        page.evaluate(KEY_DRIVER + "; keyDriver(0.84)")
        page.click("[data-action=start]")
        page.wait("hotlap.state().racing && hotlap.state().tick > 640", 60)
        page.evaluate("void (hotlap.app.stage.paused = true)")
    elif name == "page-rivals":
        line_up(page, numRivals=11, kind="mix", laps=3, place="middle")
        page.evaluate(KEY_DRIVER + "; keyDriver(0.84)")
        page.click("[data-action=start]")
        page.wait("hotlap.state().racing && hotlap.state().tick > 480", 60)
        page.evaluate("void (hotlap.app.stage.paused = true)")
    elif name == "page-learn":
        page.wait("hotlap.app.stage.swarm && hotlap.state().tick > 60")
    else:
        page.wait("document.querySelectorAll('#board tbody tr').length > 2")
    folder = Path(os.environ.get("HOTLAP_PICTURES", tmp_path))
    page.picture(folder / f"{name}.png")
    with Image.open(folder / f"{name}.png") as picture:
        assert picture.size == (1280, 720)
        assert len(picture.convert("RGB").getcolors(1 << 24)) > MIN_COLOURS
    assert page.errors == []
