"""The closing table of a training run."""

import contextlib
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hotlap.cli.output import percent, print_json, seconds
from hotlap.evaluation.baseline import CASUAL_EPISODES
from hotlap.reports.formatting import counted, gap_percent

if TYPE_CHECKING:
    from hotlap.runs.run_folder import RunFolder
    from hotlap.training.results import ExperimentResults
    from hotlap.training.trainer import Trainer


def write_report(folder: "RunFolder") -> None:
    """Write the run's report; its messages go to stderr, since the results must stay last on stdout."""
    from hotlap.cli.report import report

    with contextlib.redirect_stdout(sys.stderr):
        report([str(folder.path)])


def print_results(folder: "RunFolder") -> None:
    """Print the results document as one JSON object."""
    from hotlap.training.results import ExperimentResults

    print_json({"run": str(folder.path), **ExperimentResults.load(folder.results).to_dict()})


def print_summary(trainer: "Trainer", results: "ExperimentResults") -> None:
    """Print what the run took, and the figures of its models."""
    metadata, metrics = results.metadata, results.metrics
    steps, episodes = counted(metadata.total_timesteps, "step"), counted(metrics.total_episodes, "episode")
    print(f"{metadata.experiment_id}: {steps} in {metrics.training_time_seconds:.0f} s, {episodes}")
    if results.evaluation is not None:
        print_laps(trainer, results.evaluation)
        print(f"  model: {trainer.folder.chosen}")
        if not results.evaluation["laps"]:
            print(f"  {explain_no_lap(trainer, metadata.total_timesteps)}")
    else:
        print_returns(trainer, results)


def explain_no_lap(trainer: "Trainer", steps: int) -> str:
    """A sentence for a run whose model completes no lap: what it had, what is usual, and how to go on."""
    from hotlap.runs.recipe import usual_steps
    from hotlap.runs.run_config import in_process

    usual = usual_steps(in_process(trainer.config))
    resume = f"{trainer.processes.resume_command} {trainer.folder.path} --steps"
    if usual is not None and steps < usual[1]:
        name, total = usual
        return (
            f"The AI has not completed a lap yet: it had {steps:,} steps, and the recipe {name} trains for {total:,}. "
            f"Train on: {resume} {total}"
        )
    return f"The AI has not completed a lap yet. Train on: {resume} {2 * steps}"


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
    episodes = counted(trainer.config.evaluation.final_episodes, "deterministic episode")
    print(f"  return over {episodes} not used for selection:")
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
    track_ids = racer.track_ids
    episodes = CASUAL_EPISODES if racer.only_track else len(track_ids)
    found = evaluate(make_driver("casual"), racer.only_track or track_ids, episodes=episodes)
    casual = (found.against(optimal_s) if optimal_s else found).as_dict()
    print(f"  {'on ' + found.track:<18}  flying lap   gap to optimal   laps completed   clean")
    for name, figures in (("the AI", learned), ("casual driver", casual)):
        print(
            f"  {name:<18}{seconds(figures['median_lap_time_sec']):>12}{gap_percent(figures['gap_to_optimal']):>17}"
            f"{percent(figures['completion_rate']):>17}{percent(figures['clean_lap_rate']):>8}"
        )
    if optimal_s:
        print(f"  {'optimum':<18}{seconds(optimal_s):>12}")
