"""A run's settings: each from its default, a recipe or the command line, written down so that they come back equal."""

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from hotlap.config import read_mapping
from hotlap.envs.registration import RACER_ID
from hotlap.errors import ConfigError, InputFileError
from hotlap.models.model_file import PolicySettings
from hotlap.training.checkpoint import CheckpointConfig
from hotlap.training.run_config import (
    A2CSettings,
    EvaluationSettings,
    NormalizeSettings,
    PPOSettings,
    RacerOptions,
    RunConfig,
    SACSettings,
    find_recipe,
    load_config,
    recipe_names,
    resolve_config,
    with_steps,
)

PROJECT = Path(__file__).resolve().parent.parent.parent


def from_text(folder: Path, text: str) -> RunConfig:
    path = folder / "config.toml"
    path.write_text(text, encoding="utf-8")
    return load_config(path)


def refusal(folder: Path, text: str) -> str:
    """What is said about a file of settings; checked to be one short line that names the file."""
    with pytest.raises(ConfigError) as caught:
        from_text(folder, text)
    words = str(caught.value)
    assert words.startswith(f"{folder / 'config.toml'}: ")
    assert "\n" not in words
    assert len(words) < 400 + len(str(folder))
    return words.removeprefix(f"{folder / 'config.toml'}: ")


def recipe(folder: Path, text: str) -> str:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


# --- recipes ---


def test_there_is_a_recipe_for_every_algorithm_on_the_racer():
    assert {"racer-ppo", "racer-sac", "racer-a2c", "lunar-ppo", "lunar-a2c", "lunar-ppo-fast"} <= set(recipe_names())


@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_loads_and_comes_back_from_its_config_file(tmp_path, name):
    config = resolve_config(name, {})
    assert name.split("-")[1] == config.algo
    assert {"racer": RACER_ID, "lunar": "LunarLander-v3"}[name.split("-")[0]] == config.env
    assert from_text(tmp_path, config.to_toml()) == config


@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_says_in_its_first_line_what_it_is(name):
    assert find_recipe(name).read_text(encoding="utf-8").startswith("# ")


def test_recipes_travel_with_the_package():
    patterns = read_mapping(PROJECT / "pyproject.toml")["tool"]["setuptools"]["package-data"]["hotlap"]
    package = PROJECT / "src" / "hotlap"
    packed = {path for pattern in patterns for path in package.glob(pattern)}
    assert {find_recipe(name) for name in recipe_names()} <= packed


def test_the_reference_experiment_with_ppo():
    config = resolve_config("lunar-ppo", {})
    assert (config.env, config.seed, config.steps, config.num_envs) == ("LunarLander-v3", 42, 50_000, 1)
    assert config.ppo == PPOSettings(
        learning_rate=3e-4,
        n_steps=2048,
        batch_size=64,
        n_epochs=10,
        gamma=0.99,
        gae_lambda=0.95,
        clip_range=0.2,
        ent_coef=0.01,
    )
    assert config.checkpoint.interval == 1000
    assert not config.normalize.is_on
    assert config.backend == "gymnasium"
    assert config.policy == PolicySettings()


def test_the_reference_experiment_with_a2c():
    config = resolve_config("lunar-a2c", {})
    assert (config.env, config.seed, config.steps, config.num_envs) == ("LunarLander-v3", 42, 50_000, 1)
    assert config.a2c == A2CSettings(
        learning_rate=7e-4, n_steps=5, gamma=0.99, gae_lambda=1.0, normalize_advantage=True
    )
    assert config.checkpoint.interval == 1000
    assert not config.normalize.is_on
    assert config.policy == PolicySettings()


# --- from defaults, a recipe and what was asked for ---


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ({}, "racer-ppo"),
        ({"algo": "sac"}, "racer-sac"),
        ({"algo": "a2c", "env": RACER_ID}, "racer-a2c"),
        ({"env": "LunarLander-v3"}, "lunar-ppo"),
        ({"env": "LunarLander-v3", "algo": "a2c", "seed": None}, "lunar-a2c"),
    ],
)
def test_without_a_recipe_the_one_that_suits_is_taken(asked, name):
    assert resolve_config(None, asked) == resolve_config(name, {})


@pytest.mark.parametrize("asked", [{"env": "CartPole-v1"}, {"env": "Pendulum-v1", "algo": "sac"}])
def test_where_none_suits_the_defaults_are_taken(asked):
    assert resolve_config(None, asked) == RunConfig(**asked)


def test_what_is_asked_for_goes_before_the_recipe_and_the_recipe_before_the_defaults(tmp_path):
    mine = recipe(
        tmp_path, "steps = 1000\nseed = 3\n[racer]\naction_repeat = 2\n[racer.config.episode]\nmaxSteps = 9\n"
    )
    asked = {"seed": 5, "racer.track": "track-02", "checkpoint.interval": 7, "num_envs": None}
    assert resolve_config(mine, asked) == RunConfig(
        steps=1000,
        seed=5,
        racer=RacerOptions(track="track-02", action_repeat=2, config={"episode": {"maxSteps": 9}}),
        checkpoint=CheckpointConfig(interval=7),
    )


def test_the_shipped_recipe_is_not_changed_by_what_is_asked_for():
    before = find_recipe("racer-ppo").read_bytes()
    resolve_config("racer-ppo", {"racer.track": "track-03"})
    assert resolve_config("racer-ppo", {}).racer.track == "track-01"
    assert find_recipe("racer-ppo").read_bytes() == before


def test_a_recipe_for_one_algorithm_is_refused_for_another():
    with pytest.raises(ConfigError, match="--algo sac: the recipe racer-ppo is for ppo"):
        resolve_config("racer-ppo", {"algo": "sac"})
    assert resolve_config("racer-ppo", {"algo": "ppo"}).algo == "ppo"


def test_a_recipe_that_names_no_algorithm_goes_with_any(tmp_path):
    mine = recipe(tmp_path, "steps = 10\n")
    assert resolve_config(mine, {"algo": "sac"}) == RunConfig(algo="sac", steps=10)


def test_a_recipe_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"recipe 'racer-dqn' is not known\. Ours: lunar-a2c, "):
        resolve_config("racer-dqn", {})
    with pytest.raises(InputFileError, match=r"none\.toml: no such settings file"):
        resolve_config(str(tmp_path / "none.toml"), {})


def test_a_fault_in_the_recipe_names_the_recipe(tmp_path):
    mine = recipe(tmp_path, "[ppo]\nn_stps = 5\n")
    with pytest.raises(ConfigError, match=r"recipe .*mine\.toml: ppo: unknown key 'n_stps'\. Did you mean 'n_steps'"):
        resolve_config(mine, {"seed": 1})


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"steps": 0}, "settings: steps must be from 1 to"),
        ({"algo": "dqn"}, "settings: algo must be one of 'ppo', 'sac', 'a2c', got 'dqn'"),
        ({"checkpoint.interval": -1}, "settings: checkpoint: interval must be zero or more, got -1"),
        ({"device": "tpu"}, "settings: device must be one of 'cpu', 'cuda'"),
        ({"env": "CartPole-v1", "racer.track": "track-02"}, "settings: racer: .* CartPole-v1 takes env_args"),
    ],
)
def test_a_fault_in_what_was_asked_for_does_not_name_the_recipe(asked, words):
    with pytest.raises(ConfigError, match=f"^{words}"):
        resolve_config(None, asked)


def test_a_table_that_is_none_is_refused_even_where_something_in_it_was_asked_for(tmp_path):
    mine = recipe(tmp_path, "racer = 5\n")
    with pytest.raises(ConfigError, match=r"mine\.toml: racer must be an object, got 5"):
        resolve_config(mine, {"racer.track": "track-02"})


# --- the lander's actions ---


def test_sac_gets_the_landers_continuous_actions_and_says_so(tmp_path, caplog):
    with caplog.at_level(logging.INFO, "hotlap"):
        config = resolve_config(None, {"env": "LunarLander-v3", "algo": "sac"})
    assert config.env_args == {"continuous": True}
    assert [record.levelname for record in caplog.records] == ["INFO"]
    assert "LunarLander-v3" in caplog.text
    assert "continuous" in caplog.text
    assert from_text(tmp_path, config.to_toml()) == config


@pytest.mark.parametrize(
    "asked",
    [
        {"env": "LunarLander-v3", "algo": "ppo"},
        {"env": "LunarLander-v3", "algo": "sac", "env_args.continuous": False},
        {"env": "LunarLanderContinuous-v3", "algo": "sac"},
        {"env": "Pendulum-v1", "algo": "sac"},
        # EnvPool has the continuous lander under an id of its own.
        {"env": "LunarLander-v3", "algo": "sac", "backend": "envpool"},
    ],
)
def test_nobody_else_does(asked, caplog):
    with caplog.at_level(logging.INFO, "hotlap"):
        config = resolve_config(None, asked)
    assert config.env_args.get("continuous") in (None, False)
    assert not caplog.records


def test_other_arguments_of_the_lander_stay():
    asked = {"env": "LunarLander-v3", "algo": "sac", "env_args.gravity": -5.0}
    assert resolve_config(None, asked).env_args == {"gravity": -5.0, "continuous": True}


# --- there and back ---


@pytest.mark.parametrize(
    "config",
    [
        RunConfig(),
        RunConfig(algo="sac", sac=SACSettings(train_freq=3), checkpoint=CheckpointConfig(0, 4)),
        RunConfig(
            algo="a2c",
            racer=RacerOptions("track-02", 3, 4, 2, {"weights": {"wallPenalty": -1}, "episode": {"start": "random"}}),
            policy=PolicySettings("MlpPolicy", (64, 32), "elu", -1.5),
            normalize=NormalizeSettings(obs=True, clip_obs=3.5),
        ),
        RunConfig(
            env="CartPole-v1",
            env_args={"a": 1, "b": [1.5, "x", True], "c": {"d": {}, "e": "\u00e4\n"}, "f": [{"g": 1}]},
            ppo=PPOSettings(target_kl=0.01, desired_kl=0.02),
            evaluation=EvaluationSettings(0, 1, 2),
        ),
        # What a run does not use is kept where somebody set it.
        RunConfig(env="CartPole-v1", backend="envpool", sac=SACSettings(tau=0.5), a2c=A2CSettings(n_steps=7)),
    ],
    ids=["defaults", "sac", "racer", "foreign", "unused"],
)
def test_every_setting_comes_back_from_the_file(tmp_path, config):
    back = from_text(tmp_path, config.to_toml())
    assert back == config
    assert back.digest() == config.digest()


def test_the_file_has_no_tables_that_nobody_uses():
    assert not {"sac", "a2c", "env_args"} & set(RunConfig().as_plain())
    assert not {"ppo", "a2c", "racer", "env_args"} & set(RunConfig(algo="sac", env="Pendulum-v1").as_plain())
    assert RunConfig(env="x", env_args={"a": 1}).as_plain()["env_args"] == {"a": 1}


def test_the_digest_names_everything_but_the_length():
    config = RunConfig()
    assert with_steps(config, 5) == replace(config, steps=5)
    assert with_steps(config, 5).digest() == config.digest()
    others = [
        replace(config, seed=1),
        replace(config, racer=RacerOptions(stack=2)),
        replace(config, ppo=PPOSettings(gamma=0.98)),
        replace(config, torch_threads=2),
        RunConfig(env="x"),
        RunConfig(env="x", env_args={"a": 1}),
        RunConfig(env="x", env_args={"a": 2}),
    ]
    assert len({one.digest() for one in [config, *others]}) == 8


def test_a_run_is_named_after_its_algorithm_and_seed():
    assert RunConfig(algo="a2c", seed=7).experiment_id == "a2c_seed7"


@pytest.mark.parametrize(("algo", "kind"), [("ppo", PPOSettings), ("sac", SACSettings), ("a2c", A2CSettings)])
def test_the_hyperparameters_are_those_of_the_algorithm(algo, kind):
    assert isinstance(RunConfig(algo=algo).hyperparameters, kind)


# --- refusals ---


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sed = 1", "unknown key 'sed'. Did you mean 'seed'?"),
        ("[racer]\nspeed = 1", "racer: unknown key 'speed'."),
        ("[ppo]\nlearning_rte = 1.0", "ppo: unknown key 'learning_rte'. Did you mean 'learning_rate'?"),
        ("[racer.config.episode]\nmax_steps = 1", "racer: config: episode: unknown key 'max_steps'."),
        ("[racer.config.episode]\nmaxSteps = 0", "racer: config: episode: maxSteps must be from 1 to"),
        ('seed = "1"', "seed must be a whole number, got '1'."),
        ("seed = 1.0", "seed must be a whole number, got 1.0."),
        ("seed = 2020-01-01", "seed must be a whole number, got datetime.date(2020, 1, 1)."),
        ("racer = 1", "racer must be an object, got 1."),
        ("env = 5", "env must be of type str, got 5."),
        ('device = "tpu"', "device must be one of 'cpu', 'cuda', got 'tpu'."),
        ('[policy]\nactivation = "sine"', "policy: activation must be one of 'tanh', 'relu', 'elu', got 'sine'."),
        ("[policy]\nnet_arch = 64", "policy: net_arch must be a list, got 64."),
        ("[policy]\nnet_arch = [64, 0]", "policy: net_arch: a layer's width must be from 1 to 65536, got 0."),
        ("[ppo]\nlearning_rate = nan", "ppo: learning_rate must be finite, got nan."),
        ("[normalize]\nobs = 1", "normalize: obs must be of type bool, got 1."),
        ("seed = -1", "seed must be from 0 to 4294967295, got -1."),
        ("steps = 0", "steps must be from 1 to 1000000000000, got 0."),
        ("num_envs = 0", "num_envs must be from 1 to 1048576, got 0."),
        ("torch_threads = 0", "torch_threads must be from 1 to 1024, got 0."),
        ("recording_interval = 0", "recording_interval must be from 1 to 1000000000000, got 0."),
        ("[racer]\naction_repeat = 61", "racer: action_repeat must be from 1 to 60, got 61."),
        ("[racer]\nstack = 17", "racer: stack must be from 1 to 16, got 17."),
        ("[racer]\nlap_fourier = -1", "racer: lap_fourier must be from 0 to 64, got -1."),
        ("[normalize]\nclip_obs = 0.0", "normalize: clip_obs must be more than zero, got 0."),
        ("[normalize]\nclip_reward = -1.0", "normalize: clip_reward must be more than zero, got -1."),
        ("[ppo]\nlearning_rate = 0", "ppo: learning_rate must be more than zero, got 0."),
        ("[ppo]\nn_steps = 0", "ppo: n_steps must be from 1 to 10000000, got 0."),
        ("[ppo]\nbatch_size = 1", "ppo: batch_size must be from 2 to 10000000, got 1."),
        ("[ppo]\nn_epochs = 0", "ppo: n_epochs must be from 1 to 1000, got 0."),
        ("[ppo]\ngamma = 1.01", "ppo: gamma must be from 0 to 1, got 1.01."),
        ("[ppo]\ngae_lambda = 2", "ppo: gae_lambda must be from 0 to 1, got 2."),
        ("[ppo]\nclip_range = 0", "ppo: clip_range must be more than zero, got 0."),
        ("[ppo]\nfinal_lr_fraction = 1.5", "ppo: final_lr_fraction must be from 0 to 1, got 1.5."),
        ("[ppo]\nmax_grad_norm = 0", "ppo: max_grad_norm must be more than zero, got 0."),
        ("[ppo]\ntarget_kl = 0", "ppo: target_kl must be more than zero, got 0."),
        ("[ppo]\ndesired_kl = 0", "ppo: desired_kl must be more than zero, got 0."),
        ("[ppo]\nent_coef = -0.1", "ppo: ent_coef must not be negative, got -0.1."),
        ("[ppo]\nmin_std = -1", "ppo: min_std must not be negative, got -1."),
        ("[a2c]\nn_steps = 0", "a2c: n_steps must be from 1 to 10000000, got 0."),
        ("[a2c]\ngae_lambda = -1", "a2c: gae_lambda must not be negative, got -1."),
        ("[a2c]\nmax_grad_norm = 0", "a2c: max_grad_norm must be more than zero, got 0."),
        ("[sac]\nbuffer_size = 0", "sac: buffer_size must be from 1 to 100000000, got 0."),
        ("[sac]\nlearning_starts = -1", "sac: learning_starts must be from 0 to 1000000000000, got -1."),
        ("[sac]\nbatch_size = 0", "sac: batch_size must be from 1 to 10000000, got 0."),
        ("[sac]\ntau = 1.1", "sac: tau must be from 0 to 1, got 1.1."),
        ("[sac]\ntrain_freq = 0", "sac: train_freq must be from 1 to 1000000, got 0."),
        ("[sac]\ngradient_steps = 0", "sac: gradient_steps must be from 1 to 1000000, got 0."),
        ("[checkpoint]\ninterval = -1", "checkpoint: interval must be zero or more, got -1."),
        ("[checkpoint]\nkeep = -1", "checkpoint: keep must be zero or more, got -1."),
        ("[evaluation]\ninterval = -1", "evaluation: interval must be from 0 to 1000000000000, got -1."),
        ("[evaluation]\nepisodes = 0", "evaluation: episodes must be from 1 to 10000, got 0."),
        ("[evaluation]\nfinal_episodes = 0", "evaluation: final_episodes must be from 1 to 10000, got 0."),
        ("[env_args]\na = 1", "env_args: hotlap/Racer-v0 takes its settings from the table `racer`."),
        ('backend = "envpool"', "backend: hotlap/Racer-v0 brings its own batched world."),
        ('env = "x"\n[racer]\nstack = 2', "racer: tracks and cars are hotlap/Racer-v0's; x takes env_args."),
        ('env = "x"\n[env_args]\nday = 2020-01-01', "env_args.day must be text, true, false, a finite number,"),
        ('env = "x"\n[env_args]\na = [1, [inf]]', "env_args.a[1][0] must be text, true, false, a finite number,"),
        ("num_envs = 1\n[ppo]\nn_steps = 1", "ppo: n_steps times num_envs must be 2 or more, got 1."),
        (
            'algo = "a2c"\n[a2c]\nn_steps = 1\nnormalize_advantage = true',
            "a2c: n_steps times num_envs must be 2 or more, got 1.",
        ),
        ("seed = = 1", "not valid TOML: "),
    ],
)
def test_what_cannot_be_is_refused_in_one_line_that_names_file_and_key(tmp_path, text, words):
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
def test_what_just_can_be_is_taken(tmp_path, text):
    from_text(tmp_path, text)


@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
def test_a_number_that_is_none_is_refused_in_python_too(value):
    with pytest.raises(ConfigError, match="ent_coef must not be negative"):
        PPOSettings(ent_coef=value)
    with pytest.raises(ConfigError, match="clip_obs must be more than zero"):
        NormalizeSettings(clip_obs=value)
    with pytest.raises(ConfigError, match=r"env_args\.a must be text"):
        RunConfig(env="x", env_args={"a": value})


def test_a_key_that_is_no_text_is_refused_in_python_too():
    with pytest.raises(ConfigError, match=r"env_args\.a: keys must be text, got 3"):
        RunConfig(env="x", env_args={"a": {3: 1}})
