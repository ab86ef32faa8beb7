"""A window that shows frames at the pace of the simulation, for `render_mode="human"`. Needs pygame and a display."""

import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from hotlap.envs.rendering import FRAME_PX
from hotlap.errors import ConfigError, explain_missing, one_line
from hotlap.sim.vehicle import TICKS_PER_SECOND

RENDER_MODES = ("human", "rgb_array")
WINDOW_FPS = 30
TICKS_PER_FRAME = TICKS_PER_SECOND // WINDOW_FPS
_ADVICE = "Use render_mode='rgb_array', or watch the page: hotlap play."
# SDL chooses these where there is no display; a test may ask for one.
_INVISIBLE = ("offscreen", "dummy")
_CHOICE = "SDL_VIDEODRIVER"


def check_render_mode(render_mode: object) -> None:
    """Raise ConfigError unless there is such a mode."""
    if render_mode is not None and render_mode not in RENDER_MODES:
        names = ", ".join(map(repr, RENDER_MODES))
        raise ConfigError(f"render_mode must be None or one of {names}, got {render_mode!r:.40}.")


def offered_modes() -> list[str]:
    """The modes that work with what is installed."""
    try:
        has_window = find_spec("pygame") is not None
    except ModuleNotFoundError:  # a finder may raise it
        has_window = False
    return list(RENDER_MODES) if has_window else [mode for mode in RENDER_MODES if mode != "human"]


class Window:
    """Shows frames. Closing it ends only the showing, and without a display nothing is shown, which a warning says."""

    def __init__(self, title: str) -> None:
        self._pygame = pygame = _import_pygame()
        self.is_open = False
        try:
            pygame.display.init()
            if pygame.display.get_driver() in _INVISIBLE and _CHOICE not in os.environ:
                pygame.display.quit()
                gym.logger.warn(f"render_mode 'human': there is no display, so nothing is shown. {_ADVICE}")
                return
            self._surface = pygame.display.set_mode((FRAME_PX, FRAME_PX))
        except pygame.error as error:
            raise ConfigError(f"render_mode 'human': no window can be opened ({one_line(error)}). {_ADVICE}") from None
        pygame.display.set_caption(title)
        self._clock = pygame.time.Clock()
        self.is_open = True

    def is_due(self, tick: int) -> bool:
        """Whether a frame should be shown at a tick of the episode."""
        return self.is_open and tick % TICKS_PER_FRAME == 0

    def show(self, frame: NDArray[np.uint8]) -> None:
        """Show a frame (height, width, 3), and wait until it is time for the next."""
        if not self.is_open:
            return
        pygame = self._pygame
        if any(event.type == pygame.QUIT for event in pygame.event.get()):
            gym.logger.warn("the window was closed; the environment goes on without it.")
            self.close()
            return
        pygame.surfarray.blit_array(self._surface, frame.swapaxes(0, 1))
        pygame.display.flip()
        self._clock.tick(WINDOW_FPS)

    def close(self) -> None:
        """Close the window."""
        if self.is_open:
            self.is_open = False
            self._pygame.display.quit()


def render_with(
    render_mode: str | None, window: Window | None, draw: Callable[[], NDArray[np.uint8]]
) -> NDArray[np.uint8] | None:
    """What an environment's `render` returns: the picture, or None if it is shown in the window instead."""
    if render_mode is None:
        gym.logger.warn("render() without a render mode; make the environment with render_mode='rgb_array'.")
        return None
    if window is None:
        return draw()
    if window.is_open:
        window.show(draw())
    return None


def _import_pygame() -> Any:
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")  # it would print a line
    try:
        import pygame
    except ModuleNotFoundError as error:
        raise explain_missing(error) from None
    return pygame
