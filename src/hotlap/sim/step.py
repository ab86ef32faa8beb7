"""One car, one step: action repeat, autoreset and infos around the world's tick. Every engine calls this."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hotlap.sim.compilation import kernel, rare_kernel
from hotlap.sim.domain import arriving, disturb_if_noisy, equip_if_drawn, own_place, send
from hotlap.sim.world import (
    INFO_DTYPE,
    NUM_ACTIONS,
    NUM_OBSERVATIONS,
    STATE_DTYPE,
    begin_episode,
    describe,
    observe,
    tick,
)

F = np.float32
ZERO = F(0.0)


class Batch(NamedTuple):
    """Everything that a step reads and writes, for N cars; every array has N rows."""

    states: NDArray[np.void]
    obs: NDArray[np.float32]  # (N, 14), or more columns with the view of the road
    rewards: NDArray[np.float32]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    infos: NDArray[np.void]
    final_obs: NDArray[np.float32]  # last observation of an episode, for cars that were reset on this step
    final_infos: NDArray[np.void]


def make_batch(num_cars: int, num_observations: int = NUM_OBSERVATIONS) -> Batch:
    """A batch of `num_cars` cars, all zero."""
    return Batch(
        np.zeros(num_cars, STATE_DTYPE),
        np.zeros((num_cars, num_observations), np.float32),
        np.zeros(num_cars, np.float32),
        np.zeros(num_cars, np.bool_),
        np.zeros(num_cars, np.bool_),
        np.zeros(num_cars, INFO_DTYPE),
        np.zeros((num_cars, num_observations), np.float32),
        np.zeros(num_cars, INFO_DTYPE),
    )


@kernel
def is_finite(value):
    """False for NaN and the infinities."""
    return value - value == ZERO


@kernel
def clear_info(info):
    """The info of a car that has not moved yet."""
    info.progress, info.speed, info.wall = ZERO, ZERO, ZERO
    info.offTrack, info.backward, info.stillness = ZERO, ZERO, ZERO
    info.wallContact = False
    info.lapTime = F(np.nan)
    info.lapClean = False


@kernel
def see(i, ribbons, cars, rules, batch, obs):
    """Observe car i, with noise where the rules say so."""
    place = own_place(i, cars)
    observe(batch.states[i], ribbons, cars[place : place + 1], obs)
    disturb_if_noisy(batch.states[i], rules, obs)


@kernel
def restart_car(i, ribbons, cars, rules, batch):
    """Begin car i's episode; its observation is left to the caller."""
    tracks, nodes, _ = ribbons
    me, info = batch.states[i], batch.infos[i]
    equip_if_drawn(i, cars, rules, batch)
    begin_episode(me, tracks, nodes, rules[0])
    clear_info(info)
    describe(me, info)
    info.rawSpeed = me.forward_mps


@kernel
def reset_car(i, ribbons, cars, rules, batch):
    """Begin car i's episode and observe it."""
    restart_car(i, ribbons, cars, rules, batch)
    see(i, ribbons, cars, rules, batch, batch.obs[i])


@kernel
def add_before(info, before):
    """Add the earlier ticks of a step to its last tick's info: reward terms, wall contact, and the lap if one ended."""
    progress, speed, wall, off_track, backward, stillness, wall_contact, lap_time_s, lap_clean = before
    info.progress, info.speed, info.wall = progress + info.progress, speed + info.speed, wall + info.wall
    info.offTrack, info.backward = off_track + info.offTrack, backward + info.backward
    info.stillness = stillness + info.stillness
    info.wallContact = wall_contact or info.wallContact
    if not is_finite(info.lapTime):  # no lap ended in the last tick
        info.lapTime, info.lapClean = lap_time_s, lap_clean


@rare_kernel
def hold_action(me, action, ribbons, cars, rules, info, so_far, num_ticks):
    """Up to `num_ticks` more ticks with the same action; `so_far` and the result: (reward, terminated, truncated)."""
    tracks, nodes, portals = ribbons
    reward, terminated, truncated = so_far
    for _ in range(num_ticks):
        if terminated or truncated:
            break
        terms = info.progress, info.speed, info.wall, info.offTrack, info.backward, info.stillness
        before = (*terms, info.wallContact, info.lapTime, info.lapClean)
        gain, terminated, truncated = tick(me, action, tracks, nodes, portals, cars, rules[0], info)
        reward += gain
        add_before(info, before)
    return reward, terminated, truncated


@rare_kernel
def drive_late(me, row, ribbons, cars, rules, info, repeat):
    """Up to `repeat` ticks with actions that arrive late; (reward, terminated, truncated)."""
    clear_info(info)
    result = (ZERO, False, False)
    for _ in range(repeat):
        if result[1] or result[2]:
            break
        sent_on, first = me.tick, arriving(me, rules[0], row)
        action = row[first : first + NUM_ACTIONS]
        result = hold_action(me, action, ribbons, cars, rules, info, result, 1)
        send(sent_on, row)
    return result


@kernel
def drive_car(i, actions, ribbons, cars, rules, batch, repeat):
    """Up to `repeat` ticks of car i with one action, reported as one step; True if its episode ended."""
    tracks, nodes, portals = ribbons
    me, info, place = batch.states[i], batch.infos[i], own_place(i, cars)
    own = cars[place : place + 1]
    if actions.shape[1] > NUM_ACTIONS:
        result = drive_late(me, actions[i], ribbons, own, rules, info, repeat)
    else:
        result = tick(me, actions[i], tracks, nodes, portals, own, rules[0], info)
        if repeat > 1:
            result = hold_action(me, actions[i], ribbons, own, rules, info, result, repeat - 1)
    reward, terminated, truncated = result
    batch.rewards[i], batch.terminated[i], batch.truncated[i] = reward, terminated, truncated
    return terminated or truncated


@rare_kernel
def finish_episode(i, ribbons, cars, rules, batch):
    """Keep the last info and observation of car i's episode, and begin its next one."""
    batch.final_infos[i] = batch.infos[i]
    see(i, ribbons, cars, rules, batch, batch.final_obs[i])
    batch.states[i].episode += 1
    restart_car(i, ribbons, cars, rules, batch)


@kernel
def step_car(i, actions, ribbons, cars, rules, batch, autoreset, repeat):
    """One step of car i and its observation; the step ends with the episode.

    With `autoreset` a car whose episode ended is reset at once and drives again from the next step.
    """
    has_ended = drive_car(i, actions, ribbons, cars, rules, batch, repeat)
    if autoreset and has_ended:
        finish_episode(i, ribbons, cars, rules, batch)
    see(i, ribbons, cars, rules, batch, batch.obs[i])
