"""The page on a phone, upright and across: nothing lies on top of anything else, and a race can be paused."""

import pytest

pytestmark = pytest.mark.timeout(180)
UPRIGHT, ACROSS = (390, 844), (844, 390)
RACING = "hotlap.state().racing"

# Pairs of visible panels and buttons that overlap by more than a pixel, and what lies outside the window.
OVERLAPS = """(() => {
  const names = ['.bar', '.bar nav', '#side', '.dash', '.delta', '.map-box', '#view-tools', '#race-tools',
    '#touch > div:first-child', '#touch > div:last-child', '#overlay > .panel', '#playback'];
  const shown = [];
  for (const name of names) {
    const element = document.querySelector(name);
    const box = element?.getBoundingClientRect();
    if (!box?.width || !box.height) continue;
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    shown.push([name, box]);
  }
  const found = [];
  for (const [name, box] of shown) {
    const isInside = box.left > -1 && box.top > -1 && box.right < innerWidth + 1 && box.bottom < innerHeight + 1;
    if (!isInside) found.push(`${name} is outside`);
  }
  shown.forEach(([a, one], k) => {
    for (const [b, other] of shown.slice(k + 1)) {
      if (a === '.bar' && b === '.bar nav') continue;
      const across = Math.min(one.right, other.right) - Math.max(one.left, other.left);
      const down = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
      if (across > 1 && down > 1) found.push(`${a} on ${b}`);
    }
  });
  return found;
})()"""
SETTLED = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def overlaps(page):
    page.evaluate(SETTLED)
    return page.evaluate(OVERLAPS)


@pytest.mark.parametrize("size", [UPRIGHT, ACROSS], ids=["upright", "across"])
def test_all_of_every_view_has_its_own_place_and_a_finger_pauses_and_restarts_a_race(static_page, open_page, size):
    page = open_page(f"{static_page.url}#watch", *size, is_phone=True)
    page.wait("hotlap.state().cars.length && document.querySelector('#race-link')")
    assert overlaps(page) == []
    page.evaluate("void (location.hash = '#learn')")
    page.wait("hotlap.app.stage.swarm && hotlap.app.stage.cars.length")
    assert overlaps(page) == []
    page.evaluate("void (location.hash = '#race')")
    page.wait("document.querySelector('[data-action=start]')")
    assert overlaps(page) == []
    page.click("[data-action=start]")
    page.wait(f"{RACING} && hotlap.state().tick > 5", 20)
    assert overlaps(page) == []

    page.touch(["#touch-gas"])
    page.wait("hotlap.state().cars[0].speed > 3")
    page.touch([])
    tap(page, "[data-action=pause]")
    page.wait(f"!{RACING} && document.querySelector('#overlay').textContent.includes('Paused')")
    assert overlaps(page) == []
    tap(page, "#overlay .button.main")
    page.wait(RACING)
    tap(page, "[data-action=restart]")
    page.wait("hotlap.state().tick < 20 && hotlap.state().cars[0].speed < 1")
    page.wait(RACING, 20)
    assert page.errors == []


def tap(page, selector):
    page.touch([selector])
    page.touch([])
