"""A road that crosses itself is drawn as a bridge: the later part over the earlier one."""

import time

import pytest

pytestmark = pytest.mark.timeout(120)
DRAWN_S = 10.0  # a busy machine draws the picture later

# A figure eight; its two parts cross in the origin.
EIGHT = """(() => {
  const points = Array.from({ length: 32 }, (_, k) => {
    const t = (2 * Math.PI * (k + 0.5)) / 32;
    return [170 * Math.sin(t), 110 * Math.sin(2 * t)];
  });
  const { draw } = hotlap.app.views;
  draw.replace(points);
})()"""

# The colour of the picture at points along the deck's middle line, where the walls of the road below would be.
DECK = """(() => {
  const { stage } = hotlap.app;
  const [bridge] = stage.picture.bridges;
  const { centre } = stage.track;
  return bridge.deck.slice(2, -2).map((node) => {
    const [sx, sy] = stage.camera.toScreen(centre.x[node], centre.y[node]);
    return [...stage.context.getImageData(Math.round(sx), Math.round(sy), 1, 1).data].slice(0, 3);
  });
})()"""


def is_asphalt(colours, wanted):
    """Whether the deck has the road's colour everywhere."""
    near = [max(abs(a - b) for a, b in zip(colour, wanted, strict=True)) < 12 for colour in colours]
    return len(near) > 10 and all(near)


def test_a_figure_eight_has_one_bridge_with_a_free_deck(used_server_page):
    page = used_server_page
    page.show("draw")
    page.evaluate(EIGHT)
    page.wait("document.querySelector('#draw-ok')")
    assert page.evaluate("hotlap.app.stage.picture.bridges.length") == 1
    page.evaluate(
        "void (hotlap.app.stage.setCars([]), hotlap.app.stage.onDraw = null, "
        "hotlap.app.stage.camera.scale = 4, hotlap.app.stage.camera.x = 0, hotlap.app.stage.camera.y = 0)"
    )
    road = page.evaluate("import('./js/colours.js').then(({ COLOURS }) => COLOURS.road)")
    wanted = [int(road[k : k + 2], 16) for k in (1, 3, 5)]
    end_s = time.monotonic() + DRAWN_S
    while not is_asphalt(colours := page.evaluate(DECK), wanted) and time.monotonic() < end_s:
        time.sleep(0.1)
    assert is_asphalt(colours, wanted), colours
    assert page.errors == []
