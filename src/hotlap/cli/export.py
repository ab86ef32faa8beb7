"""`hotlap export` and `hotlap import`: models to other programs, and from stable-baselines3."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hotlap.atomic_files import writable
from hotlap.cli.run_monitor import log_to_stderr
from hotlap.envs.registration import RACER_ID
from hotlap.errors import ConfigError, InputFileError, ModelError, OutputFileError

if TYPE_CHECKING:
    from hotlap.models.model_file import ModelCard, ModelFile


def export(
    model: Annotated[
        str,
        typer.Argument(metavar="RUN|MODEL", help="A run, which means its best model, a file, champion or generalist."),
    ],
    kind: Annotated[str, typer.Option("--format", help="onnx or sb3.")],
    out: Annotated[Path, typer.Option(help="The file to write; sb3 writes a normalizer beside it.")],
    track: Annotated[str | None, typer.Option(help="The track of a champion. Default: track-01.")] = None,
) -> None:
    """Write a model for other programs: as ONNX, or for plain stable-baselines3.

    ONNX holds everything from raw observations to actions in one file. sb3 means a .zip for PPO.load, A2C.load or
    SAC.load, and a .pkl for VecNormalize.load where observations are normalized.

    Example: hotlap export results/experiments/ppo_seed42 --format onnx --out out/driver.onnx
    """
    from hotlap.models.model_file import read_model
    from hotlap.models.shipped_models import SHIPPED_NAMES, find_shipped
    from hotlap.runs.find_driver import find_model
    from hotlap.tracks.registry import DEFAULT_TRACK

    if kind not in ("onnx", "sb3"):
        raise ConfigError(f"--format must be onnx or sb3, got {kind!r:.40}.")
    if track is not None and model != "champion":
        raise ConfigError(f"--track {track:.80}: only a champion has a track to choose. Leave it out.")
    chosen = DEFAULT_TRACK if track is None else track
    found = read_model(find_shipped(model, chosen) if model in SHIPPED_NAMES else find_model(model))
    with log_to_stderr(verbose=False, quiet=False):
        files = _to_onnx(found, out) if kind == "onnx" else _to_sb3(found, out)
    print(f"{found.card.algorithm} model of {found.card.environment}, step {found.card.step:,}")
    for file in files:
        print(f"  {file}")
    _print_racer_settings(found.card)


def _to_onnx(model: "ModelFile", out: Path) -> list[Path]:
    from hotlap.models.onnx_export import export_onnx

    export_onnx(model, _check_target(out, model.path))
    return [out]


def _to_sb3(model: "ModelFile", out: Path) -> list[Path]:
    from hotlap.models.sb3_exchange import export_sb3, sb3_names

    for file in sb3_names(out):
        _check_target(file, model.path)
    files = export_sb3(model, out)
    typer.echo(
        "hotlap: these files are pickles, for exchange with stable-baselines3. Loading a pickle can run any code: "
        "load only those that you trust, and keep the original model.",
        err=True,
    )
    return files


def _print_racer_settings(card: "ModelCard") -> None:
    if card.is_racer:
        print(
            f"  drives with action_repeat {card.action_repeat}, stack {card.stack}, lap_fourier {card.lap_fourier}, "
            f"observation {card.observation}"
        )


def _check_target(out: Path, source: Path) -> Path:
    """The file to write, which must not be the file that is read."""
    if writable(out).exists() and source.exists() and out.samefile(source):
        raise OutputFileError(f"{out}: is the file to read from. Choose another file to write.")
    return out


def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE.zip", help="A file that PPO.save, A2C.save or SAC.save wrote.")],
    trust_pickle: Annotated[bool, typer.Option("--trust-pickle", help="I trust the makers of these files.")] = False,
    env: Annotated[str, typer.Option(help="The Gymnasium id of the environment that it was trained in.")] = RACER_ID,
    vecnormalize: Annotated[Path | None, typer.Option(help="The file that VecNormalize.save wrote.")] = None,
    track: Annotated[str | None, typer.Option(help="Racer: the track it was trained on.")] = None,
    action_repeat: Annotated[int | None, typer.Option(help="Racer: ticks per decision.")] = None,
    stack: Annotated[int | None, typer.Option(help="Racer: number of stacked observations.")] = None,
    lap_fourier: Annotated[int | None, typer.Option(help="Racer: number of Fourier features of the lap.")] = None,
    observation: Annotated[
        str | None,
        typer.Option(help="Racer: the observation it was trained on: rays (if not given), road, road-2 or race."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The model to write; by default FILE_hotlap.zip.")] = None,
) -> None:
    """Convert a model that plain stable-baselines3 saved.

    Example: hotlap import ppo_cartpole.zip --trust-pickle --env CartPole-v1
    """
    if not trust_pickle:
        raise ModelError(
            f"{file}: a model of stable-baselines3 is a pickle, and loading a pickle can run any code. "
            "If you trust its maker, add --trust-pickle."
        )
    from hotlap.envs.spaces import OBSERVATION_LAYOUTS, num_observations
    from hotlap.models.model_file import write_model
    from hotlap.runs.run_folder import is_there

    if not file.name or not is_there(file):
        raise InputFileError(f"{file!s:.200}: no such file. Check the path.")
    given = {"track": track, "action_repeat": action_repeat, "stack": stack, "lap_fourier": lap_fourier}
    racer: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if observation is not None:
        num_observations(observation)  # refuses an unknown one
        racer["observation_layout"] = OBSERVATION_LAYOUTS[observation]  # type: ignore[index]
    target = _check_target(out or file.with_name(f"{file.stem}_hotlap.zip"), file)
    if track is not None:
        from hotlap.tracks.registry import load_track

        load_track(track)
    from hotlap.models.sb3_exchange import read_sb3

    with log_to_stderr(verbose=False, quiet=False):
        model = read_sb3(file, env, vecnormalize=vecnormalize, racer=racer)
        write_model(target, model)
    card = model.card
    print(f"{card.algorithm} model of {card.environment}, step {card.step:,}: {target}")
    if card.is_racer:
        print(f"  its spaces are the racer's, so it is taken to be trained with physics {card.physics}")
    _print_racer_settings(card)
    print(f"  evaluate it: hotlap evaluate {target}")
