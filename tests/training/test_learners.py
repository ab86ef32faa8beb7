"""Which learner trains a run."""

import pytest

from hotlap.envs.fleet_vector import FleetVectorEnv
from hotlap.envs.spaces import action_space
from hotlap.errors import TrainingError
from hotlap.learning.distributed.processes import Place, Processes
from hotlap.learning.ppo import PPO
from hotlap.learning.sac import SAC
from hotlap.training.learners import build_learner, policy_spaces
from hotlap.training.sb3.learner import SB3Learner
from tiny_runs import tiny_config


@pytest.mark.parametrize(
    ("algo", "changes", "kind"),
    [
        ("ppo", {}, PPO),
        ("ppo", {"policy": {"kind": "MlpPolicy", "net_arch": [8]}}, PPO),
        ("ppo", {"ppo": {"target_kl": 0.1}}, SB3Learner),  # ours does not end updates early
        ("sac", {}, SAC),
        ("a2c", {}, SB3Learner),
        ("ppo", {"env": "Pendulum-v1"}, SB3Learner),
        ("sac", {"env": "Pendulum-v1"}, SB3Learner),
    ],
)
def test_our_own_learners_train_the_racer_and_the_library_everything_else(algo, changes, kind):
    learner = build_learner(tiny_config(algo, **changes))
    assert type(learner) is kind
    learner.close()


@pytest.mark.parametrize("algo", ["ppo", "a2c"])
def test_the_spaces_are_those_that_the_policy_sees(algo):
    config = tiny_config(algo, racer={"stack": 2, "lap_fourier": 3})
    learner = build_learner(config)
    observations, actions = policy_spaces(config, learner)
    assert (observations.shape, actions) == ((2 * 14 + 6,), action_space())
    if algo == "a2c":
        assert learner.spaces == (observations, actions)


@pytest.mark.parametrize(("algo", "changes"), [("a2c", {}), ("sac", {}), ("ppo", {"ppo": {"target_kl": 0.1}})])
def test_several_processes_train_only_our_ppo(algo, changes):
    with pytest.raises(TrainingError, match="trains in one process only"):
        build_learner(tiny_config(algo, num_envs=2, **changes), Processes(Place(0, 2)))


def test_the_cars_are_closed_where_the_learner_cannot_be_built(monkeypatch):
    closed = []
    monkeypatch.setattr(FleetVectorEnv, "close", lambda self: closed.append(self))
    monkeypatch.setattr("hotlap.training.learners.PPO", None)
    with pytest.raises(TypeError):
        build_learner(tiny_config())
    assert len(closed) == 1
