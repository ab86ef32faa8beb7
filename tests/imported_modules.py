"""What the processes of a test run have imported, loaded and built before they are forked."""

import importlib
import pkgutil
from contextlib import suppress

# What our commands import while they run, besides our own modules.
LIBRARIES = (
    "cv2", "gymnasium.envs.box2d.lunar_lander", "onnx",
    "optuna", "pandas", "PIL.ImageFont", "PIL.PngImagePlugin", "pydantic.main", "rich.progress", "stable_baselines3",
    "torch._dynamo", "torch.distributed", "tomllib", "torch.utils.tensorboard", "uvicorn.loops.asyncio",
)  # fmt: skip


def import_everything() -> None:
    """Import all that is used, and load the compiled simulator and the built-in tracks, but start no threads."""
    from hotlap.cli.main import app
    from hotlap.drivers import casual, packed
    from hotlap.evaluation import tick_kernels
    from hotlap.optimal.reference import find_reference
    from hotlap.sim import batch_cpu, policy_drive, race_cpu
    from hotlap.tracks.registry import list_tracks, load_track

    import_modules()
    batch_cpu.warm_up(parallel=False)
    for module in (race_cpu, policy_drive, packed, casual, tick_kernels):
        module.warm_up()
    assert app.built  # all commands
    for entry in list_tracks():
        if entry.source == "built-in":
            track = load_track(entry.track_id)
            assert find_reference(track)
            assert track.guided_ribbon


def import_modules() -> None:
    """Import our modules and the libraries they use."""
    import hotlap

    names = [module.name for module in pkgutil.walk_packages(hotlap.__path__, "hotlap.")]
    for name in (*names, *LIBRARIES):
        if not name.endswith(".__main__"):
            with suppress(ImportError):  # an optional library
                importlib.import_module(name)
