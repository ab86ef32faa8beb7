"""The look of a road in a real browser: its theme, what stands beside it, and the font."""

import pytest

from hotlap.web.site import STATIC, static_files

pytestmark = pytest.mark.timeout(120)
MAX_LOADED_BYTES = 3_000_000
# A round road of some radius in metres, with walls 8 m from its middle.
ROUND = """((radius, start = 0) => {
  const count = Math.round(2 * Math.PI * radius);
  const line = (r) => ({
    x: Float32Array.from({ length: count }, (_, k) => r * Math.cos((2 * Math.PI * k) / count)),
    y: Float32Array.from({ length: count }, (_, k) => r * Math.sin((2 * Math.PI * k) / count)),
  });
  const reach = radius + 8;
  return {
    numNodes: count, stepM: 1, curvature: new Float32Array(count).fill(1 / radius),
    centre: line(radius), left: line(radius - 5), right: line(radius + 5),
    wallLeft: line(radius - 8), wallRight: line(reach),
    tangentX: line(1).y.map((one) => -one), tangentY: line(1).x,
    box: { x0: -reach, x1: reach, y0: -reach, y1: reach }, corners: [{ arc_m: start, name: 'bend' }],
  };
})"""


@pytest.mark.parametrize(
    ("track_id", "theme"), [("track-01", "harbour"), ("track-02", "aerodrome"), ("track-03", "ridge")]
)
def test_each_built_in_track_has_its_own_theme(used_page, track_id, theme):
    page = used_page
    page.show("watch", track=track_id)
    page.wait(f"hotlap.app.track.id === '{track_id}' && hotlap.state().cars.length === 1")
    surroundings = "hotlap.app.stage.picture.surroundings"
    assert page.evaluate(f"{surroundings}.theme") == theme
    # Nothing stands on the road, in the sea or on the runway.
    clear = page.evaluate(
        f"(() => {{ const {{ ground, things }} = {surroundings}; const {{ centre }} = hotlap.app.track;"
        "const all = [...things.trees, ...things.rocks, ...things.houses];"
        "return all.length > 50 && all.every(({ x, y }) => !ground.covers(x, y, 0) &&"
        "centre.x.every((one, k) => Math.hypot(one - x, centre.y[k] - y) > 5)); })()"
    )
    assert clear
    assert page.errors == []


def test_any_road_gets_a_theme_by_how_much_it_turns(used_page):
    themes = used_page.evaluate(
        f"import('./js/themes.js').then(({{ themeOf }}) => [200, 100, 50].map((r) => themeOf({ROUND}(r))))"
    )
    assert themes == ["aerodrome", "harbour", "ridge"]  # 5, 10 and 20 rad a km


def test_boards_stand_before_a_corner_that_a_straight_leads_to(used_page):
    page = used_page
    page.show("watch", track="track-02")
    page.wait("hotlap.app.track.id === 'track-02' && hotlap.state().cars.length === 1")
    boards, numbers, corners = page.evaluate(
        "(() => { const { trackside } = hotlap.app.stage.picture; const { track } = hotlap.app;"
        "const nearest = ({ x, y }) => { let best = 0; track.centre.x.forEach((one, k) => {"
        "const at = (n) => Math.hypot(track.centre.x[n] - x, track.centre.y[n] - y);"
        "if (at(k) < at(best)) best = k; }); return best * track.stepM; };"
        "return [trackside.boards.map((one) => [one.text, nearest(one)]), trackside.numbers.map((one) => one.text),"
        "track.corners.map((one) => one.arc_m)]; })()"
    )
    assert numbers == [str(number) for number in range(1, len(corners) + 1)]
    fifty = {round(arc_m) for text, arc_m in boards if text == "50"}
    hundred = {round(arc_m) for text, arc_m in boards if text == "100"}
    assert len(fifty) >= 3
    assert len(hundred) >= 1
    # Each board of 100 m is 50 m before one of 50 m.
    assert all(any(abs(arc_m + 50 - other) <= 3 for other in fifty) for arc_m in hundred)
    round_road = page.evaluate(
        f"import('./js/trackside.js').then(({{ findTrackside }}) => findTrackside({ROUND}(80)).boards.length)"
    )
    assert round_road == 0  # no straight leads to its corner


def test_the_font_is_the_pages_own_and_its_figures_are_equally_wide(static_page, open_page):
    assert {"fonts/inter.woff2", "fonts/LICENSE.txt"} <= set(static_files())
    assert "SIL Open Font License" in (STATIC / "fonts" / "LICENSE.txt").read_text(encoding="utf-8")
    page = open_page(static_page.url)
    page.wait("document.fonts.check('16px Inter')")
    widths = page.evaluate(
        "document.fonts.load('16px Inter').then((faces) => { const box = document.createElement('span');"
        "box.style.cssText = 'font: 40px Inter; font-variant-numeric: tabular-nums; position: absolute';"
        "document.body.append(box); return [faces.length, ...['11111', '00000', '84848'].map((text) => {"
        "box.textContent = text; return box.getBoundingClientRect().width; })]; })"
    )
    assert widths[0] == 1
    assert widths[1] == widths[2] == widths[3] > 50
    loaded = page.evaluate("performance.getEntriesByType('resource').map((one) => one.decodedBodySize)")
    assert sum(loaded) < MAX_LOADED_BYTES
