"""Mutates real model files at random, uses each as `evaluate` and `export` do, and reports what happened as JSON.

Run in its own process, so that memory, imports and opened files are those of the models alone:
`python mutated_models.py SEED COUNT NUM_BOMBS MODEL…`. The folder of the first model is the current one and importable.
"""

import contextlib
import json
import random
import resource
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

from attacks.model_mutations import BOMBS, CANARY, make_bomb, mutation


def use(path: Path) -> None:
    """What `export` and `evaluate` do with a model, with episodes cut short."""
    from hotlap.drivers.packed import PackedDriver
    from hotlap.errors import HotlapError
    from hotlap.models.model_file import read_model
    from hotlap.models.onnx_export import policy_graph
    from hotlap.tracks.registry import load_track
    from hotlap.training.policy_evaluation import evaluate_model

    model = read_model(path)
    with contextlib.suppress(HotlapError):  # a picture can be evaluated, but not exported
        policy_graph(model)
    if not model.card.is_racer:
        evaluate_model(path, 1, 0)
        return
    PackedDriver.from_model(model)
    if model.card.track is not None:
        load_track(model.card.track)


class Watch:
    """Records what an audit hook sees while a model is used: only the model and installed code may be read."""

    def __init__(self, model: Path) -> None:
        import gymnasium

        import hotlap

        self.is_on = False
        self.found: list[str] = []
        self._model = str(model)
        code = {
            sys.prefix,
            sys.base_prefix,
            *(str(Path(package.__file__).parents[1]) for package in (hotlap, gymnasium)),
        }
        code.add(str(Path(json.__file__).parents[1]))
        self._code = tuple(code)

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.is_on:
            return
        if event == "open":
            path, mode = str(arguments[0]), arguments[1]
            is_written = isinstance(mode, str) and set(mode) & set("wxa+")
            if path == self._model and not is_written:
                return
            if path.startswith(self._code) and ("__pycache__" in path or not is_written):
                return
            self.found.append(f"open {path} {mode}")
        elif event == "import" and CANARY in str(arguments[0]):
            self.found.append(f"import {arguments[0]}")
        elif event.startswith(
            ("socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.fork", "ctypes.dlopen")
        ):
            self.found.append(f"{event} {arguments!s:.80}")
        elif event in ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.chmod"):
            if "__pycache__" not in str(arguments):
                self.found.append(f"{event} {arguments!s:.80}")
        elif event == "pickle.find_class":
            self.found.append(f"{event} {arguments!s:.80}")


def peak_bytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def main(seed: int, count: int, num_bombs: int, models: list[Path]) -> dict[str, Any]:
    from hotlap.errors import HotlapError
    from hotlap.training import policy_evaluation
    from hotlap.training.optimizer_start import skip_compiler_import

    skip_compiler_import()  # as our commands do
    policy_evaluation.MAX_EPISODE_STEPS = 3
    warnings.simplefilter("ignore")
    target = models[0].with_name("mutated.zip")
    whole = [path.read_bytes() for path in models]
    bombs = [make_bomb(whole[0], *bomb) for bomb in BOMBS[:num_bombs]]
    for data in whole:  # everything that a sound model needs is imported and compiled before the watch begins
        target.write_bytes(data)
        use(target)
    watch = Watch(target)
    sys.addaudithook(watch)
    rng = random.Random(seed)
    outcomes: Counter[str] = Counter()
    faults: list[str] = []
    slowest: tuple[float, str] = (0.0, "")
    before = peak_bytes()
    for index in range(count):
        data = whole[index % len(whole)]
        kind, data = ("bomb", bombs[index // 2]) if index // 2 < len(bombs) else mutation(rng, data)
        target.write_bytes(data)
        start = time.process_time()
        watch.is_on = True
        try:
            use(target)
            outcome = "used"
        except HotlapError as error:
            outcome = "refused"
            if not str(error).isprintable():
                faults.append(f"{index} {kind}: not one printable line: {error!s:.200}")
        except BaseException as error:
            outcome = "crashed"
            faults.append(f"{index} {kind}: {type(error).__name__}: {error!s:.200}")
        finally:
            watch.is_on = False
        slowest = max(slowest, (time.process_time() - start, f"{index} {kind}"))
        outcomes[f"{kind} {outcome}"] += 1
    target.unlink()
    return {
        "outcomes": dict(sorted(outcomes.items())),
        "faults": faults,
        "seen": watch.found,
        "is_canary_imported": CANARY in sys.modules,
        "slowest_s": slowest[0],
        "slowest": slowest[1],
        "peak_more_bytes": peak_bytes() - before,
    }


if __name__ == "__main__":
    seed, count, num_bombs = map(int, sys.argv[1:4])
    print(json.dumps(main(seed, count, num_bombs, [Path(name) for name in sys.argv[4:]])))
