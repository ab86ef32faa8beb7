"""The card of a run's model has everything needed to drive with it."""

from dataclasses import replace

from hotlap.envs.spaces import OBSERVATION_LAYOUTS
from hotlap.sim.version import PHYSICS_VERSION
from hotlap.training.learners import build_learner, policy_spaces
from hotlap.training.model_card import make_card
from tiny_runs import LUNAR, tiny_config


def card_of(config):
    return make_card(config, policy_spaces(config, build_learner(config)), 12, "digest")


def test_a_racer_card_has_the_physics_and_the_racer_options():
    options = {"track": "track-02", "action_repeat": 3, "stack": 2, "lap_fourier": 1}
    card = card_of(tiny_config("a2c", seed=5, racer=options, normalize={"clip_obs": 7.0}))
    assert (card.algorithm, card.environment, card.seed, card.step) == ("a2c", "hotlap/Racer-v0", 5, 12)
    assert (card.physics, card.observation_layout, card.track) == (
        PHYSICS_VERSION,
        OBSERVATION_LAYOUTS["rays"],
        "track-02",
    )
    assert (card.action_repeat, card.stack, card.lap_fourier, card.clip_obs) == (3, 2, 1, 7.0)
    assert (card.policy.kind, card.policy.net_arch, card.weights_digest) == ("MlpPolicy", (8,), "digest")


def test_the_card_of_another_environment_has_its_arguments_and_no_physics():
    card = card_of(tiny_config("sac", LUNAR, normalize={"obs": False}))
    assert (card.environment, card.env_args, card.physics, card.clip_obs) == (LUNAR, {"continuous": True}, None, None)


def test_a_model_trained_behind_a_bridge_has_the_card_of_a_local_one():
    local = tiny_config(racer={"track": "track-03", "episode": {}})
    arguments = {"bridge_url": "ws://127.0.0.1:1"}
    remote = tiny_config(env="hotlap/RemoteRacer-v0", env_args=arguments, racer={"track": "track-03", "episode": {}})
    spaces = policy_spaces(local, build_learner(local))
    card = make_card(remote, spaces, 12, "digest")
    assert replace(card, config_digest="") == replace(make_card(local, spaces, 12, "digest"), config_digest="")
