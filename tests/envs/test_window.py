"""The window of `render_mode="human"`, on SDL's driver that shows nothing."""

import sys

import numpy as np
import pytest

import hotlap
from hotlap.envs import window as window_module
from hotlap.errors import ConfigError, MissingLibraryError

pygame = pytest.importorskip("pygame", reason='pygame is missing: pip install "hotlap[window]"')


@pytest.fixture
def display(monkeypatch):
    """A display that nobody sees; frames do not wait for their time."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setattr(window_module, "WINDOW_FPS", 0)
    yield
    pygame.display.quit()


def shown() -> np.ndarray:
    return pygame.surfarray.array3d(pygame.display.get_surface()).swapaxes(0, 1)


@pytest.mark.usefixtures("display")
def test_reset_and_step_show_the_picture_of_rgb_array():
    env, drawn = hotlap.RacerEnv(render_mode="human"), hotlap.RacerEnv(render_mode="rgb_array")
    env.reset(seed=3)
    drawn.reset(seed=3)
    assert (shown() == drawn.render()).all()
    for _ in range(4):
        for one in (env, drawn):
            one.step([0.0, 1.0, 0.0])
    assert (shown() == drawn.render()).all()
    assert env.render() is None
    env.close()
    assert not pygame.display.get_init()
    env.close()


@pytest.mark.usefixtures("display")
def test_only_every_second_tick_is_drawn(monkeypatch):
    env, ticks = hotlap.RacerEnv(render_mode="human"), []
    monkeypatch.setattr(env, "render", lambda: ticks.append(int(env.fleet.states["tick"][0])))
    env.reset(seed=0)
    for _ in range(6):
        env.step([0.0, 1.0, 0.0])
    assert ticks == [0, 2, 4, 6]


@pytest.mark.usefixtures("display")
def test_a_race_is_shown():
    env = hotlap.parallel_env(num_cars=2, render_mode="human")
    env.reset(seed=1)
    for _ in range(2):
        env.step({agent: np.array([0.0, 1.0, 0.0], np.float32) for agent in env.agents})
    drawn = hotlap.parallel_env(num_cars=2, render_mode="rgb_array")
    drawn.reset(seed=1)
    drawn.set_state(env.get_state())
    assert (shown() == drawn.render()).all()
    env.close()
    assert not pygame.display.get_init()


@pytest.mark.usefixtures("display")
def test_the_window_does_not_change_the_drive_and_may_be_closed():
    env, blind = hotlap.RacerEnv(render_mode="human"), hotlap.RacerEnv()
    for one in (env, blind):
        one.reset(seed=5, options={"start": "random"})
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    env.step([0.1, 1.0, 0.0])
    with pytest.warns(UserWarning, match="the window was closed"):
        found = env.step([0.1, 1.0, 0.0])
    assert not pygame.display.get_init()
    for _ in range(2):
        wanted = blind.step([0.1, 1.0, 0.0])
    assert (found[0] == wanted[0]).all()
    assert env.step([0.0, 0.0, 0.0])[1:] == blind.step([0.0, 0.0, 0.0])[1:]


def test_only_modes_that_work_are_offered(monkeypatch):
    assert window_module.offered_modes() == ["human", "rgb_array"]
    monkeypatch.setattr(window_module, "find_spec", lambda _: None)
    assert window_module.offered_modes() == ["rgb_array"]


def test_without_a_display_or_pygame_it_is_one_line(monkeypatch):
    monkeypatch.delenv("SDL_VIDEODRIVER", raising=False)
    monkeypatch.setattr(pygame.display, "init", lambda: None)
    monkeypatch.setattr(pygame.display, "get_driver", lambda: "offscreen")
    monkeypatch.setattr(pygame.display, "set_mode", lambda *_: pytest.fail("a window was opened"))
    with pytest.warns(UserWarning, match=r"no display, so nothing is shown\. Use .* hotlap play\."):
        env = hotlap.RacerEnv(render_mode="human")
    env.reset(seed=0)
    env.step([0.0, 1.0, 0.0])
    assert env.render() is None
    env.close()

    def refuse():
        raise pygame.error("No available\nvideo device")

    monkeypatch.setattr(pygame.display, "init", refuse)
    with pytest.raises(ConfigError, match=r"no window can be opened \(No available video device\)"):
        hotlap.RacerEnv(render_mode="human")
    monkeypatch.setitem(sys.modules, "pygame", None)
    with pytest.raises(MissingLibraryError, match=r'pip install "hotlap\[window\]"'):
        hotlap.RacerEnv(render_mode="human")
