"""A run's configuration: saved and loaded without loss, and refused where it cannot work."""

import math
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import pytest

from hotlap.envs.settings import EpisodeRules, RewardRules
from hotlap.errors import ConfigError, UnknownTrackError
from hotlap.hyperparameters import A2CSettings, PPOSettings, SACSettings
from hotlap.models.model_file import PolicySettings
from hotlap.runs.run_config import (
    EvaluationSettings,
    NormalizeSettings,
    RacerOptions,
    RunConfig,
    in_process,
    load_config,
    with_steps,
)
from hotlap.tracks.registry import split_ids
from hotlap.training.checkpoint import CheckpointConfig


def from_text(folder: Path, text: str) -> RunConfig:
    path = folder / "config.toml"
    path.write_text(text, encoding="utf-8")
    return load_config(path)


def refusal(folder: Path, text: str) -> str:
    """The error message for a settings file, checked to be one short line that names the file."""
    with pytest.raises(ConfigError) as caught:
        from_text(folder, text)
    words = str(caught.value)
    assert words.startswith(f"{folder / 'config.toml'}: ")
    assert "\n" not in words
    assert len(words) < 400 + len(str(folder))
    return words.removeprefix(f"{folder / 'config.toml'}: ")


@pytest.mark.parametrize(
    "config",
    [
        RunConfig(),
        RunConfig(algo="sac", sac=SACSettings(train_freq=3), checkpoint=CheckpointConfig(0, 4)),
        RunConfig(
            algo="a2c",
            racer=RacerOptions(
                "track-02", 3, 4, 2, rewards=RewardRules(wall_penalty=-1.0), episode=EpisodeRules(start="random")
            ),
            policy=PolicySettings("MlpPolicy", (64, 32), "elu", -1.5),
            normalize=NormalizeSettings(obs=True, clip_obs=3.5),
        ),
        RunConfig(
            env="CartPole-v1",
            env_args={"a": 1, "b": [1.5, "x", True], "c": {"d": {}, "e": "\u00e4\n"}, "f": [{"g": 1}]},
            ppo=PPOSettings(target_kl=0.01, desired_kl=0.02),
            evaluation=EvaluationSettings(0, 1, 2),
        ),
        # Tables that the run does not use are saved if they were changed.
        RunConfig(env="CartPole-v1", backend="envpool", sac=SACSettings(tau=0.5), a2c=A2CSettings(n_steps=7)),
    ],
    ids=["defaults", "sac", "racer", "foreign", "unused"],
)
def test_a_saved_configuration_is_loaded_equal(tmp_path, config):
    back = from_text(tmp_path, config.to_toml())
    assert back == config
    assert back.digest() == config.digest()


def test_unused_default_tables_are_not_saved():
    assert not {"sac", "a2c", "env_args"} & set(RunConfig().as_plain())
    assert not {"ppo", "a2c", "racer", "env_args"} & set(RunConfig(algo="sac", env="Pendulum-v1").as_plain())
    assert RunConfig(env="x", env_args={"a": 1}).as_plain()["env_args"] == {"a": 1}


def test_the_digest_depends_on_everything_but_the_number_of_steps_and_the_device():
    config = RunConfig()
    assert replace(config, device="cuda").digest() == config.digest()
    assert with_steps(config, 5) == replace(config, steps=5)
    assert with_steps(config, 5).digest() == config.digest()
    others = [replace(config, seed=1), replace(config, racer=RacerOptions(stack=2)), replace(config, torch_threads=2)]
    others += [replace(config, ppo=PPOSettings(gamma=0.98)), RunConfig(env="x")]
    others += [RunConfig(env="x", env_args={"a": value}) for value in (1, 2)]
    assert len({one.digest() for one in [config, *others]}) == 8


@pytest.mark.parametrize(("algo", "kind"), [("ppo", PPOSettings), ("sac", SACSettings), ("a2c", A2CSettings)])
def test_the_algorithm_gives_a_run_its_name_and_hyperparameters(algo, kind):
    config = RunConfig(algo=algo, seed=7)
    assert config.experiment_id == f"{algo}_seed7"
    assert isinstance(config.hyperparameters, kind)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sed = 1", "unknown key 'sed'. Did you mean 'seed'?"),
        ("[ppo]\nlearning_rte = 1.0", "ppo: unknown key 'learning_rte'. Did you mean 'learning_rate'?"),
        ("[racer.episode]\nmax_tick = 1", "racer: episode: unknown key 'max_tick'. Did you mean 'max_ticks'?"),
        ("[racer.episode]\nmaxSteps = 1", "racer: episode: unknown key 'maxSteps'. Did you mean 'max_ticks'?"),
        (
            "[racer.rewards]\nwallPenalty = -1",
            "racer: rewards: unknown key 'wallPenalty'. Did you mean 'wall_penalty'?",
        ),
        ("[racer.episode]\nmax_ticks = 0", "racer: episode: max_ticks must be from 1 to 2147483647 ticks, got 0."),
        (
            "[racer.rewards]\npenalty_min_speed_mps = 101",
            "racer: rewards: penalty_min_speed_mps must be from 0 to 100 m/s, got 101.0.",
        ),
        (
            "[racer.config.episode]\nmaxSteps = 9",
            "racer: unknown key 'config'. Write its keys in snake_case into [racer.rewards] and [racer.episode]; ",
        ),
        ("seed = 2020-01-01", "seed must be a whole number, got datetime.date(2020, 1, 1)."),
        ('device = "tpu"', "device must be one of 'cpu', 'cuda', got 'tpu'."),
        ('[policy]\nactivation = "sine"', "policy: activation must be one of 'tanh', 'relu', 'elu', got 'sine'."),
        ("[policy]\nnet_arch = [64, 0]", "policy: net_arch[1] must be from 1 to 65536, got 0."),
        ("[policy]\ncritic_arch = [64, 0]", "policy: critic_arch[1] must be from 1 to 65536, got 0."),
        ("[policy]\ncritic_arch = [64]", "policy: critic_arch: needs net_arch. Give both."),
        ("[env_args]\na = 1", "env_args: hotlap/Racer-v0 takes its settings from the table `racer`."),
        ('backend = "envpool"', "backend: hotlap/Racer-v0 is always run by our own simulator."),
        (
            'env = "hotlap/RemoteRacer-v0"\n[env_args]\ntrack_id = "track-02"',
            "env_args: hotlap/RemoteRacer-v0 takes its",
        ),
        (
            'env = "hotlap/RemoteRacer-v0"\ndevice = "cuda"',
            "device: cars behind a bridge are trained on the CPU, got cuda",
        ),
        (
            'env = "hotlap/RemoteRacer-v0"\nbackend = "envpool"',
            "backend: hotlap/RemoteRacer-v0 is always run by our own",
        ),
        ('env = "x"\n[racer]\nstack = 2', "racer: this table is for hotlap/Racer-v0 only; x takes env_args."),
        ('env = "x"\n[env_args]\nday = 2020-01-01', "env_args.day must be text, true, false, a finite number,"),
        ('env = "x"\n[env_args]\na = [1, [inf]]', "env_args.a[1][0] must be text, true, false, a finite number,"),
        ("num_envs = 1\n[ppo]\nn_steps = 1", "ppo: n_steps times num_envs must be 2 or more, got 1."),
        (
            'algo = "a2c"\n[a2c]\nn_steps = 1\nnormalize_advantage = true',
            "a2c: n_steps times num_envs must be 2 or more",
        ),
        ("seed = = 1", "not valid TOML: "),
    ],
)
def test_a_bad_setting_is_refused_in_one_line_that_names_file_and_key(tmp_path, text, words):
    assert refusal(tmp_path, text).startswith(words)


@pytest.mark.parametrize(
    "text",
    [
        "num_envs = 2\n[ppo]\nn_steps = 1",
        'algo = "a2c"\n[a2c]\nn_steps = 1',
        'algo = "sac"\n[ppo]\nn_steps = 1',
        "[checkpoint]\ninterval = 0",
        "[evaluation]\ninterval = 0",
    ],
)
def test_settings_at_their_limits_are_accepted(tmp_path, text):
    from_text(tmp_path, text)


def ranged_fields(settings: object, table: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    """Every field with a range, and the tables that it is in."""
    for field in fields(settings):
        value = getattr(settings, field.name)
        if is_dataclass(value):
            yield from ranged_fields(value, (*table, field.name))
        elif field.metadata.get("allowed") and field.name not in ("net_arch", "critic_arch", "learners"):  # lists
            yield table, field


RANGED = list(ranged_fields(RunConfig()))


@pytest.mark.parametrize(
    ("table", "field"), RANGED, ids=lambda one: ".".join(one) if isinstance(one, tuple) else one.name
)
def test_a_value_just_outside_its_range_is_refused(tmp_path, table, field):
    allowed = field.metadata["allowed"]
    outside = [allowed.low if allowed.excludes_low else allowed.low - 1]
    outside += [] if math.isinf(allowed.high) else [allowed.high + 1]
    for value in outside:
        text = f"{'.'.join((*table, field.name))} = {value}"
        words = f"{': '.join((*table, field.name))} must be {allowed} {field.metadata['unit']}".rstrip()
        assert refusal(tmp_path, text).startswith(f"{words}, got {value}")


@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
def test_values_that_a_file_cannot_hold_are_refused_in_python_too(value):
    with pytest.raises(ConfigError, match="ent_coef must be 0 or more"):
        PPOSettings(ent_coef=value)
    with pytest.raises(ConfigError, match=r"env_args\.a must be text"):
        RunConfig(env="x", env_args={"a": value})
    with pytest.raises(ConfigError, match=r"env_args\.a: keys must be text, got 3"):
        RunConfig(env="x", env_args={"a": {3: value}})


def test_cars_behind_a_bridge_have_the_racers_settings_and_no_file_names_the_bridge(tmp_path):
    racer = RacerOptions("track-02", action_repeat=3)
    local = RunConfig(num_envs=7, racer=racer)
    url = "ws://127.0.0.1:9876/?token=secret"
    remote = RunConfig(env="hotlap/RemoteRacer-v0", num_envs=7, racer=racer, env_args={"bridge_url": url})
    assert (remote.is_racer, remote.is_remote, local.is_racer, local.is_remote) == (True, True, True, False)
    assert in_process(remote) == local
    assert in_process(local) is local
    assert "127.0.0.1" not in remote.to_toml()
    saved = from_text(tmp_path, remote.to_toml())
    assert saved == replace(remote, env_args={})
    assert saved.digest() == remote.digest() != local.digest()


def test_several_tracks_are_named_by_ids_splits_and_patterns():
    assert RacerOptions().track_ids == ["track-01"]
    named = RacerOptions(tracks=("track-03", "test", "track-0*")).track_ids
    assert named == ["track-03", *split_ids("test"), "track-01", "track-02", "track-03"]
    with pytest.raises(UnknownTrackError, match=r"tracks 'nothing-\*': no id is like this"):
        _ = RacerOptions(tracks=("nothing-*",)).track_ids
    with pytest.raises(ConfigError, match="track: track-02 and tracks are both given"):
        RacerOptions("track-02", tracks=("train",))
