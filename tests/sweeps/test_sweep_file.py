"""The sweep file: what it says becomes runs, and what cannot run is refused before anything starts."""

import pytest

from hotlap.errors import ConfigError
from hotlap.sweeps.sweep_file import HalvingSettings, check_environments, load_sweep, with_plain_env_ids
from sweeps.tiny_sweeps import write_file

RATE = "ppo.learning_rate"
RACER = {"env": None, "recipe": "racer-ppo", "objective": "gap_to_optimal", "direction": "minimize"}
RACER |= {"ppo": None, "policy": None, "algo": None, "recording_interval": None}


def test_the_files_settings_override_the_recipe_and_the_trials_override_the_files(tmp_path):
    file = write_file(
        tmp_path / "s.toml", **(RACER | {"steps": 1000, "num_envs": 8, "racer": {"track": "track-02"}, "seeds": [7, 8]})
    )
    sweep = load_sweep(file)
    config = sweep.config_of({RATE: 0.5, "racer.episode.max_ticks": 99}, 8)
    assert (config.steps, config.num_envs, config.racer.track, config.seed) == (1000, 8, "track-02", 8)
    assert config.ppo.learning_rate == 0.5
    assert config.ppo.desired_kl == 0.02  # the recipe's
    assert config.racer.episode.max_ticks == 99
    assert config.racer.episode.start == "random"  # the recipe's
    assert config.torch_threads == 1
    other = sweep.config_of({}, 8)  # applying settings to one trial changed nothing for others
    assert other.ppo.learning_rate == 5e-4
    assert other.racer.episode.max_ticks != 99


def test_recipes_and_tracks_are_searched_like_any_setting(tmp_path):
    space = {"recipe": {"choices": ["racer-ppo", "racer-a2c"]}, "racer.track": {"choices": ["track-01", "track-03"]}}
    sweep = load_sweep(write_file(tmp_path / "s.toml", **(RACER | {"recipe": None, "space": space})))
    assert sweep.trials == 4
    config = sweep.config_of({"recipe": "racer-a2c", "racer.track": "track-03"}, 1)
    assert (config.algo, config.racer.track, config.num_envs) == ("a2c", "track-03", sweep.bases["racer-a2c"].num_envs)


def test_seeds_alone_are_one_trial_and_default_to_the_recipes(tmp_path):
    sweep = load_sweep(write_file(tmp_path / "s.toml", space=None, sampler=None, seeds=None))
    assert (sweep.trials, sweep.seeds, sweep.sampler) == (1, (42,), "grid")


def test_rungs_multiply_until_the_end():
    assert HalvingSettings(first_steps=500, factor=3).rungs(14_000) == (500, 1500, 4500, 13_500)
    assert HalvingSettings(first_steps=500, factor=3).rungs(4500) == (500, 1500)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"trails": 3}, r"unknown key 'trails'\. Did you mean 'trials'\?"),
        ({"seed": 3}, r"unknown key 'seed'\. Write seeds"),
        ({"objective": None}, "objective is missing"),
        ({"direction": None}, "direction is missing"),
        ({"direction": "down"}, r"direction\[0\] must be one of 'minimize', 'maximize', got 'down'"),
        ({"direction": ["maximize", "minimize"]}, "every objective needs its direction, got 1 and 2"),
        ({"objective": "gap_to_optimal"}, "objective 'gap_to_optimal' is not a figure of these runs"),
        ({"seeds": [1, 1]}, "seeds has a value twice"),
        ({"seeds": [-1]}, r"seeds\[0\] must be from 0"),
        ({"seeds": "1"}, "seeds must be a list"),
        ({"trials": 3}, "trials is 3, but a grid has 2"),
        ({"sampler": "tpe"}, "trials is missing"),
        ({"sampler": "cma"}, "sampler must be one of 'tpe', 'random', 'grid'"),
        ({"sampler": "random", "trials": 0}, "trials must be from 1"),
        ({"steps": 0}, "steps must be from 1"),
        ({"recipe": "racer-dqn"}, "recipe 'racer-dqn' is not known"),
        ({"ppo": {"gama": 1}}, "unknown key 'gama'. Did you mean 'gamma'"),
        ({"space": {RATE: {"low": 1e-3, "high": 1e-3}}}, "range is empty"),
        ({"space": {RATE: {"low": 0.1, "high": 1.0}}}, "a grid needs a finite set of values"),
        ({"space": {RATE: {"choices": [-1.0]}}}, r"a trial with ppo.learning_rate = -1.0 cannot run: .*more than 0"),
        ({"space": {RATE: {"choices": [1e-3, "fast"]}}}, "a trial with ppo.learning_rate = 'fast' cannot run"),
        ({"space": {"algo": {"choices": ["ppo", "a2c"]}}}, "Search over recipes instead"),
        ({"space": {"ppo.n_steps": {"low": 1, "high": 200_000}}}, "at most 100000"),
        ({"halving": {"first_steps": 256, "factor": 3}}, "first_steps must be below steps"),
        ({"halving": {"first_steps": 32, "factor": 3}}, "needs an evaluation within first_steps"),
        ({"halving": {"factor": 3}}, "first_steps must be from 1"),
        ({"halving": {"first_steps": 64, "factor": 1}}, "factor must be from 2"),
        ({"halving": {"first_steps": 64}, "objective": "training_time_seconds"}, "periodic evaluations have no"),
        ({"halving": {"first_steps": 64}, "space": {"steps": {"choices": [128, 256]}}}, "'steps' cannot be searched"),
        ({"env": "hotlap/RemoteRacer-v0", "policy": None}, "not behind a bridge"),
    ],
)
def test_what_cannot_run_is_refused_with_its_place(tmp_path, changes, message):
    file = write_file(tmp_path / "s.toml", **changes)
    with pytest.raises(ConfigError, match=message) as refusal:
        load_sweep(file)
    assert str(refusal.value).startswith(str(file))
    assert "\n" not in str(refusal.value)


def test_an_environment_or_track_that_is_not_there_is_refused_before_a_run_starts(tmp_path):
    unknown = load_sweep(write_file(tmp_path / "s.toml", env="CartPol-v1"))
    with pytest.raises(ConfigError, match="CartPole"):
        check_environments(unknown)
    space = {"racer.track": {"choices": ["track-01", "track-99"]}}
    with pytest.raises(ValueError, match="track-99"):
        check_environments(load_sweep(write_file(tmp_path / "t.toml", **(RACER | {"space": space}))))


def test_no_file_imports_a_module_and_a_foreign_folder_passes_no_arguments(tmp_path):
    named = load_sweep(write_file(tmp_path / "s.toml", env="evil:CartPole-v1"))
    with pytest.raises(ConfigError, match="would import a module"):
        with_plain_env_ids(named, [], is_own=True)
    assert next(iter(with_plain_env_ids(named, ["evil"], is_own=True).bases.values())).env == "CartPole-v1"
    arguments = load_sweep(write_file(tmp_path / "a.toml", env_args={"file": "/etc/passwd"}))
    with_plain_env_ids(arguments, [], is_own=True)
    with pytest.raises(ConfigError, match="not known to take the argument 'file'"):
        with_plain_env_ids(arguments, [], is_own=False)
