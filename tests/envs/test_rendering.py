"""Frames are drawn from above without a display."""

import numpy as np
import pytest

import hotlap
from hotlap.envs.rendering import CAR, EDGE, FRAME_PX, ROAD, THROTTLE, WALL, draw_frame

MIDDLE = FRAME_PX // 2


def count(frame: np.ndarray, colour: tuple[int, ...], slack: int = 12) -> int:
    """How many pixels have about this colour."""
    return int((np.abs(frame.astype(int) - np.array(colour)).max(axis=-1) <= slack).sum())


@pytest.fixture
def env() -> hotlap.RacerEnv:
    env = hotlap.RacerEnv(render_mode="rgb_array")
    env.reset(seed=0)
    return env


def test_a_frame_is_an_rgb_array(env):
    frame = env.render()
    assert (frame.shape, frame.dtype) == ((FRAME_PX, FRAME_PX, 3), np.uint8)


def test_the_car_is_in_the_middle_on_the_road_between_the_walls(env):
    frame = env.render()
    assert count(frame[MIDDLE - 15 : MIDDLE + 15, MIDDLE - 20 : MIDDLE + 20], CAR) > 50
    for colour in (ROAD, EDGE, WALL):
        assert count(frame, colour) > 500


def test_the_frame_follows_the_car(env):
    before = env.render()
    for _ in range(120):
        env.step([0.0, 1.0, 0.0])
    after = env.render()
    assert (before != after).any(axis=-1).mean() > 0.002
    assert count(after, THROTTLE) > count(before, THROTTLE) + 200


def test_rendering_is_repeatable_and_does_not_change_the_state(env):
    before = env.get_state()
    np.testing.assert_array_equal(env.render(), env.render())
    for name, column in env.get_state().items():
        np.testing.assert_array_equal(column, before[name])


@pytest.mark.parametrize("track_id", ["track-02", "track-03", "train-000"])
def test_other_tracks_can_be_drawn(track_id):
    env = hotlap.RacerEnv(track_id)
    for seed in range(3):
        obs, _ = env.reset(seed=seed, options={"start": "random"})
        frame = draw_frame(env.fleet.tracks[0], env.fleet.states[0], obs, env.fleet.top_speed_mps)
        assert count(frame, ROAD) > 500


def test_without_a_render_mode_nothing_is_drawn():
    env = hotlap.RacerEnv()
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="render_mode='rgb_array'"):
        assert env.render() is None


@pytest.mark.parametrize("mode", ["ansi", "", 3])
def test_other_render_modes_are_refused(mode):
    with pytest.raises(ValueError, match="render_mode must be None or one of 'human', 'rgb_array'"):
        hotlap.RacerEnv(render_mode=mode)
