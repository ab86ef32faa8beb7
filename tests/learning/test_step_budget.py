import pytest

from hotlap.learning.step_budget import RolloutPlan, plan_rollout


@pytest.mark.parametrize(
    ("done", "expected"),
    [
        (0, RolloutPlan(num_steps=32, is_short=False, ends_at=96)),
        (104, RolloutPlan(num_steps=32, is_short=False, ends_at=200)),
        (192, RolloutPlan(num_steps=3, is_short=True, ends_at=201)),  # whole steps of three environments
        (201, RolloutPlan(num_steps=0, is_short=True, ends_at=201)),
    ],
)
def test_a_rollout_ends_at_the_first_step_that_reaches_the_budget(done, expected):
    assert plan_rollout(done, total_steps=200, num_envs=3, num_steps=32) == expected


@pytest.mark.parametrize(("num_envs", "n_steps", "done"), [(1, 2048, 50_000), (512, 64, 50_176), (7, 2048, 50_001)])
def test_only_the_last_rollout_is_short(num_envs, n_steps, done):
    """The stock library would train for 51,200 steps where 50,000 are asked for."""
    plans = [plan_rollout(0, 50_000, num_envs, n_steps)]
    while plans[-1].num_steps:
        plans.append(plan_rollout(plans[-1].ends_at, 50_000, num_envs, n_steps))
    assert plans[-1].ends_at == done
    assert {plan.num_steps for plan in plans[:-2]} == {n_steps}
