"""The closing table of a training run."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hotlap.cli.output import percent, print_json, seconds
from hotlap.reports.formatting import MISSING

if TYPE_CHECKING:
    from hotlap.training.results import ExperimentResults
    from hotlap.training.run_files.run_folder import RunFolder
    from hotlap.training.trainer import Trainer

CASUAL_EPISODES = 20


def print_results(folder: "RunFolder") -> None:
    """Print the results document as one JSON object."""
    from hotlap.training.results import ExperimentResults

    print_json({"run": str(folder.path), **ExperimentResults.load(folder.results).to_dict()})


def print_summary(trainer: "Trainer", results: "ExperimentResults") -> None:
    """Print what the run took, and the figures of its models."""
    metadata, metrics = results.metadata, results.metrics
    print(
        f"{metadata.experiment_id}: {metadata.total_timesteps:,} steps in {metrics.training_time_seconds:.0f} s,"
        f" {metrics.total_episodes:,} episodes"
    )
    if results.evaluation is not None:
        print_laps(trainer, results.evaluation)
        print(f"  model: {trainer.folder.chosen}")
    else:
        print_returns(trainer, results)


def print_returns(trainer: "Trainer", results: "ExperimentResults") -> None:
    """A table of the final and the best model, each with its own figures."""
    final = results.metrics
    rows: list[tuple[str, int, Any, Any, Any, str]] = [
        ("final", results.metadata.total_timesteps, final.final_reward_mean, final.final_reward_std,
         final.episode_length_mean, results.model.model_file)
    ]  # fmt: skip
    if (best := results.best) is not None:
        figures = (best[name] for name in ("final_reward_mean", "final_reward_std", "episode_length_mean"))
        rows.append(("best", best["step"], *figures, best["model_file"]))
    print(f"  return over {trainer.config.evaluation.final_episodes} deterministic episodes not used for selection:")
    print(f"  {'model':<7}{'step':>12}{'return':>10}{'std':>9}{'length':>9}  file")
    for name, step, mean, std, length, file in rows:
        shown = (f"{'-' if value is None else format(value, '.1f')}" for value in (mean, std, length))
        mean_text, std_text, length_text = shown
        path = trainer.folder.path / file
        print(f"  {name:<7}{step:>12,}{mean_text:>10}{std_text:>9}{length_text:>9}  {path}")


def print_laps(trainer: "Trainer", learned: Mapping[str, Any]) -> None:
    """A table of the model's laps, the casual driver's and the optimal one."""
    from hotlap.drivers.driver import make_driver
    from hotlap.evaluation.evaluate import evaluate

    racer = trainer.config.racer
    optimal_s = trainer.optimal_lap_s
    # On several tracks the casual driver drives them all once.
    tracks, episodes = (racer.track_ids, len(racer.track_ids)) if racer.tracks else (racer.track, CASUAL_EPISODES)
    found = evaluate(make_driver("casual"), tracks, episodes=episodes)
    casual = (found.against(optimal_s) if optimal_s else found).as_dict()
    print(f"  {'on ' + found.track:<18}  flying lap   gap to optimal   laps completed   clean")
    for name, figures in (("the AI", learned), ("casual driver", casual)):
        gap = figures["gap_to_optimal"]
        shown = MISSING if gap is None else f"{100.0 * gap:.1f} %"
        print(
            f"  {name:<18}{seconds(figures['median_lap_time_sec']):>12}{shown:>17}"
            f"{percent(figures['completion_rate']):>17}{percent(figures['clean_lap_rate']):>8}"
        )
    if optimal_s:
        print(f"  {'optimum':<18}{seconds(optimal_s):>12}")
