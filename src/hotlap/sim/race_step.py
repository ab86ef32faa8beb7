"""One step of a race: action repeat, autoreset and observation around the phases of `race.py`. Every engine calls this.

The functions are of one car. An engine calls each for all cars of a race before it goes on to the next: on a CPU in a
loop, on a GPU with one thread a car and a barrier between them.
"""

import numpy as np

from hotlap.sim.compilation import kernel, rare_kernel
from hotlap.sim.opponent_view import NUM_OPPONENT_VIEW, view_one_opponent, view_opponents
from hotlap.sim.race import (
    NO_CARS,
    RACING,
    count_touching,
    drive_alone,
    join_race,
    rank,
    settle_in_race,
    show,
)
from hotlap.sim.road_view import NUM_ROAD_VIEW, NUM_ROAD_VIEW_2
from hotlap.sim.step import add_before, clear_info
from hotlap.sim.world import NUM_OBSERVATIONS, describe, observe

F = np.float32
ZERO = F(0.0)
# With the first and the second version of `road`.
NUM_RACE_OBSERVATIONS = NUM_OBSERVATIONS + NUM_ROAD_VIEW + NUM_OPPONENT_VIEW
NUM_RACE_OBSERVATIONS_2 = NUM_OBSERVATIONS + NUM_ROAD_VIEW_2 + NUM_OPPONENT_VIEW


@kernel
def begin_step(i, batch, field):
    """Clear what the last step reported of car i."""
    entrant = field.entrants[i]
    entrant.contact_mps, entrant.at_fault, entrant.touched = ZERO, 0, NO_CARS
    entrant.passed, entrant.overtakes, entrant.slipstream = NO_CARS, 0, ZERO
    batch.rewards[i] = ZERO
    clear_info(batch.infos[i])


@kernel
def drive_phase(i, actions, ribbons, cars, batch, field):
    """Phase 1 of a tick of car i."""
    drive_alone(batch.states[i], field.entrants[i], field.poses[i], actions[i], ribbons[0], ribbons[1], cars)


@kernel
def touch_phase(i, first, last, ribbons, batch, field):
    """Phase 2 of a tick of car i."""
    if last - first > 1:
        count_touching(i, first, last, field.poses, ribbons[0][batch.states[i].track].length_m)


@kernel
def settle_phase(i, first, last, ribbons, cars, rules, race, batch, field, is_first):
    """Phase 3 of a tick of car i, the first of its step or a later one; a car out of the race keeps its state."""
    me, entrant, info = batch.states[i], field.entrants[i], batch.infos[i]
    if entrant.status != RACING:
        return
    terms = info.progress, info.speed, info.wall, info.offTrack, info.backward, info.stillness
    before = (*terms, info.wallContact, info.lapTime, info.lapClean)
    reward = settle_in_race(i, first, last, me, entrant, field.poses, ribbons, cars, rules[0], race[0], info)
    if is_first:
        batch.rewards[i] = reward
    else:
        batch.rewards[i] += reward
        add_before(info, before)


@kernel
def rank_phase(i, first, last, race, field):
    """Phase 4 of a tick of car i."""
    rank(i, first, last, field.entrants, race[0])


@kernel
def end_step(i, ribbons, race, batch, field):
    """Say whether the race is over, and show car i as it is now; the same for all cars of a race."""
    entrant = field.entrants[i]
    is_cut_off = entrant.is_over != 0 and entrant.tick >= race[0].max_ticks
    batch.truncated[i] = is_cut_off
    batch.terminated[i] = entrant.is_over != 0 and not is_cut_off
    show(batch.states[i], entrant, field.poses[i], ribbons[0], ribbons[1])


@kernel
def has_opponents(num_columns):
    """Whether an observation with so many columns has those of other cars."""
    return num_columns in (NUM_RACE_OBSERVATIONS, NUM_RACE_OBSERVATIONS_2)


@kernel
def see_one_opponent(i, first, last, k, ribbons, batch, field):
    """Observe opponent k of car i only."""
    obs = batch.obs[i]
    columns = obs[obs.shape[0] - NUM_OPPONENT_VIEW :]
    view_one_opponent(i, first, last, k, field.poses, ribbons[0][batch.states[i].track].length_m, columns)


@kernel
def see_opponents(i, first, last, ribbons, batch, field, obs):
    """Observe the other cars, where `obs` has room for them."""
    if has_opponents(obs.shape[0]):
        columns = obs[obs.shape[0] - NUM_OPPONENT_VIEW :]
        view_opponents(i, first, last, field.poses, ribbons[0][batch.states[i].track].length_m, columns)


@kernel
def see(i, first, last, ribbons, cars, batch, field, obs):
    """Observe the road, and the other cars where `obs` has room for them."""
    observe(batch.states[i], ribbons, cars, obs)
    see_opponents(i, first, last, ribbons, batch, field, obs)


@rare_kernel
def keep_end(i, first, last, ribbons, cars, batch, field):
    """Keep the last info, entrant and observation of car i's race; its state now counts the next episode."""
    batch.final_infos[i] = batch.infos[i]
    field.final_entrants[i] = field.entrants[i]
    see(i, first, last, ribbons, cars, batch, field, batch.final_obs[i])
    batch.states[i].episode += 1


@kernel
def restart(i, first, ribbons, rules, race, batch, field):
    """Put car i on the grid of a new race and show it."""
    me, entrant, info = batch.states[i], field.entrants[i], batch.infos[i]
    join_race(me, entrant, i - first, race[0], ribbons[0], ribbons[1], rules[0])
    clear_info(info)
    describe(me, info)
    info.rawSpeed = me.forward_mps
    show(me, entrant, field.poses[i], ribbons[0], ribbons[1])
