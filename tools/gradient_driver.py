"""Train a driver by the derivative of the simulator: which change of its weights makes its cars quicker.

usage: python tools/gradient_driver.py OUT.zip MODEL.zip --tracks train 'gen-*' --new --rate 1e-3 --critic-first 0
       python tools/gradient_driver.py OUT.zip MODEL.zip --tracks train [--minutes 30] [--rate 4e-4] [--edge 0.6]

MODEL.zip gives the network, what it sees and the scale of what it sees; with `--new` not its weights. A model that PPO
trained gets worse at rates above 1e-5; one that was trained here does not.

PPO finds out by noise which actions are good. Here the equations tell. Cars drive two seconds in the simulator; then
the same two seconds are computed again as tensors (`differentiable_car`), and the derivative of what they gained goes
back through physics, view and policy to the weights (back-propagation through time). What comes after the two seconds
is the value that a critic gives; it learns from the same drives. Gained is time on the guide, less a price for being
near the edge or beyond it. Walls and rays are the simulator's: what a car saw of walls has no derivative, and a car
that touched one counts no further. Some cars start where others were before they left the road.

OUT.zip is the average of the weights over the last updates, written every 100 updates; Ctrl-C keeps the last.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import torch

from gradient_cars import Group
from gradient_learner import Learner
from hotlap.atomic_files import writable
from hotlap.drivers.packed import PackedDriver
from hotlap.errors import HotlapError
from hotlap.models.model_file import ModelFile, read_model, write_model
from hotlap.tracks.registry import find_entries, named_tracks
from last_layer import check_model
from polish_driver import positive, whole

WARM_UP = 50  # updates in which the learning rate grows
WRITE_EVERY, PRINT_EVERY = 100, 20


class Training:
    """Groups of cars that take turns, and the learner."""

    def __init__(self, model: ModelFile, tracks: Sequence[str], options: argparse.Namespace) -> None:
        self._options, self._rng = options, np.random.default_rng(options.seed)
        torch.manual_seed(options.seed)
        driver = PackedDriver.from_model(model)
        self._learner = Learner(model, driver, options.rate, options.margin, options.edge)
        if options.new:
            self._learner.forget()
        tracks = [tracks[k] for k in self._rng.permutation(len(tracks))]
        parts = [tracks[k : k + options.cars] for k in range(0, len(tracks), options.cars)]
        self._groups = [Group(driver, part, options.cars, options.spun) for part in parts]
        for group in self._groups:
            group.begin(self._rng)

    def run(self, out: Path) -> None:
        """Train until the time is over, or Ctrl-C; the averaged model is written now and then."""
        options, began, seen = self._options, time.monotonic(), []
        with suppress(KeyboardInterrupt):
            number, passed = 0, 0.0
            while passed < 1.0:
                passed = (time.monotonic() - began) / (60.0 * options.minutes)
                passed = min(1.0, number / options.updates if options.updates else passed)
                seen.append(self._improve(number, 1.0 - passed))
                number += 1
                if number % PRINT_EVERY == 0:
                    means = {name: float(np.mean([each[name] for each in seen])) for name in seen[0]}
                    shown = ", ".join(f"{name} {value:.4f}" for name, value in means.items())
                    print(f"update {number}, {time.monotonic() - began:.0f} s: {shown}", flush=True)
                    seen.clear()
                if number % WRITE_EVERY == 0:
                    write_model(out, self._learner.averaged_model(out))
        write_model(out, self._learner.averaged_model(out))

    def _improve(self, number: int, remaining: float) -> dict[str, float]:
        """One segment and one update; at first the critic alone learns."""
        options, group = self._options, self._groups[number % len(self._groups)]
        shape = options.decisions, options.cars, self._learner.num_axes
        noise = torch.as_tensor((options.noise * self._rng.standard_normal(shape)).astype(np.float32))
        segment = group.drive(self._learner.numbers(), noise)
        decay = 0.02 + 0.98 * 0.5 * (1.0 + np.cos(np.pi * (1.0 - remaining)))
        scale = decay * min(max((number - options.critic_first) / WARM_UP, 0.0), 1.0)
        figures = self._learner.update(group, segment, remaining, scale)
        group.renew(options.renewed, options.hard, self._rng)
        return figures


def main(arguments: Sequence[str] | None = None) -> int:
    """Train; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--new", action="store_true", help="begin with random weights in a network like the model's")
    parser.add_argument("--tracks", nargs="+", required=True, help="ids of tracks, or patterns of them")
    parser.add_argument("--cars", type=whole(2), default=512, help="that drive at once; more tracks take turns")
    parser.add_argument("--decisions", type=whole(2), default=32, help="in a segment")
    parser.add_argument("--minutes", type=positive, default=45.0, help="after which the training ends")
    parser.add_argument(
        "--updates", type=whole(0), default=0, help="after which it ends instead, the same bits each time"
    )
    parser.add_argument("--critic-first", type=whole(0), default=150, help="updates in which only the critic learns")
    parser.add_argument("--rate", type=positive, default=3e-4, help="learning rate at first")
    parser.add_argument("--margin", type=positive, default=0.4, help="metres inside the edge from which it has a price")
    parser.add_argument("--edge", type=positive, default=0.2, help="that price: seconds a decision for a square metre")
    parser.add_argument("--noise", type=positive, default=0.02, help="standard deviation of the noise of actions")
    parser.add_argument("--spun", type=positive, default=0.15, help="fraction of the starts in which the car has spun")
    parser.add_argument(
        "--renewed", type=positive, default=0.04, help="fraction of the cars with a new start after a segment"
    )
    parser.add_argument("--hard", type=positive, default=0.06, help="fraction that starts where others left the road")
    parser.add_argument("--threads", type=whole(1), default=1)
    parser.add_argument("--seed", type=whole(0), default=1)
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    try:
        model, out = read_model(options.model), writable(options.out)
        check_model(model)
        tracks = [track for name in options.tracks for track in named_tracks(name)]
        find_entries(tracks)
        Training(model, tracks, options).run(out)
    except HotlapError as error:
        print(f"gradient_driver: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
