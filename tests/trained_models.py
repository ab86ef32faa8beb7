"""Fixtures: models of real runs of a few hundred steps, each with the learner that was saved."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

# The first test that needs a model waits for its training, on a machine that may be busy.
TRAINING_S = 120


@dataclass(frozen=True)
class Trained:
    """A finished run: its folder, the file of its final model, and stable-baselines3's algorithm with its policy."""

    config: Any
    folder: Path
    path: Path
    model: Any

    def normalize(self, obs: Any) -> Any:
        """Observations normalized by the learner's own normalizer."""
        normalizer = self.model.get_vec_normalize_env()
        return obs if normalizer is None else normalizer.normalize_obs(obs)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if {"train", "cartpole", "racer", "soft_racer", "any_racer"}.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.timeout(TRAINING_S))


@pytest.fixture(scope="session")
def train(compiled: None, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Trained]:
    """Trains a run with these settings that is saved only at its end."""
    from hotlap.runs.run_config import EvaluationSettings, RunConfig
    from hotlap.runs.run_folder import create_run
    from hotlap.training import trainer
    from hotlap.training.checkpoint import CheckpointConfig
    from hotlap.training.sb3.learner import SB3Learner

    def run(**settings: Any) -> Trained:
        config = RunConfig(checkpoint=CheckpointConfig(interval=0), evaluation=EvaluationSettings(0, 1, 1), **settings)
        folder = create_run(config, str(tmp_path_factory.mktemp("run")), overwrite=False)
        built = []
        with pytest.MonkeyPatch.context() as patch:
            build = trainer.build_learner
            patch.setattr(trainer, "build_learner", lambda *given: built.append(build(*given)) or built[0])
            trainer.Trainer(config, folder).run()
        library = SB3Learner(config)
        library.load_policy(built[0].policy())
        return Trained(config, folder.path, folder.model, library.model)

    return run


@pytest.fixture(scope="session")
def cartpole(train: Callable[..., Trained]) -> Trained:
    """PPO with a normalizer and discrete actions."""
    from hotlap.hyperparameters import PPOSettings
    from hotlap.models.model_file import PolicySettings
    from hotlap.runs.run_config import NormalizeSettings

    return train(
        env="CartPole-v1",
        steps=128,
        num_envs=2,
        policy=PolicySettings(net_arch=(8,)),
        normalize=NormalizeSettings(obs=True, reward=True, clip_obs=2.0),
        ppo=PPOSettings(n_steps=32, batch_size=32, n_epochs=2),
    )


@pytest.fixture(scope="session")
def racer(train: Callable[..., Trained]) -> Trained:
    """PPO on the racer with normalizer, action repeat, stack and Fourier features."""
    from hotlap.envs.settings import EpisodeRules
    from hotlap.hyperparameters import PPOSettings
    from hotlap.models.model_file import PolicySettings
    from hotlap.runs.run_config import NormalizeSettings, RacerOptions

    return train(
        steps=512,
        num_envs=8,
        racer=RacerOptions(action_repeat=3, stack=2, lap_fourier=2, episode=EpisodeRules(start="random", max_ticks=60)),
        policy=PolicySettings(net_arch=(16, 8), activation="elu", log_std_init=-1.0),
        normalize=NormalizeSettings(obs=True),
        ppo=PPOSettings(n_steps=16, batch_size=64, n_epochs=2, learning_rate=1e-2),
    )


@pytest.fixture(scope="session")
def soft_racer(train: Callable[..., Trained]) -> Trained:
    """SAC on the racer with default options."""
    from hotlap.envs.settings import EpisodeRules
    from hotlap.hyperparameters import SACSettings
    from hotlap.models.model_file import PolicySettings
    from hotlap.runs.run_config import RacerOptions

    return train(
        algo="sac",
        steps=128,
        num_envs=4,
        racer=RacerOptions(episode=EpisodeRules(max_ticks=40)),
        policy=PolicySettings(net_arch=(8,)),
        sac=SACSettings(buffer_size=512, learning_starts=32, batch_size=16),
    )


@pytest.fixture(params=["racer", "soft_racer"])
def any_racer(request: pytest.FixtureRequest) -> Trained:
    """Each of the two models of the racer."""
    found: Trained = request.getfixturevalue(request.param)
    return found
