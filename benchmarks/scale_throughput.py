"""Measures sweeps on this machine: python benchmarks/scale_throughput.py workers|small|ray [--json].

workers  independent runs on one and on two processes, in turns; their ratio
small    many runs of about a second: nothing may be lost, and what the scheduler costs
ray      runs of about a minute on the local pool and on a Ray node of this machine; Ray's overhead
"""

import argparse
import json
import os
import resource
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import tomli_w

# Read when ray is imported: a node on loopback, as nothing else needs to reach it.
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
os.environ["RAY_AUTH_MODE"] = "token"
os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)

from hotlap.sweeps.local_pool import LocalPool
from hotlap.sweeps.run_messages import RunReport, RunTask
from hotlap.sweeps.scheduler import Scheduler
from hotlap.sweeps.study import SweepStudy
from hotlap.sweeps.sweep_file import load_sweep
from hotlap.sweeps.sweep_folder import SweepFolder, create_folder
from hotlap.sweeps.sweep_runner import Pool, run_sweep

RUN: dict[str, Any] = {
    "algo": "ppo",
    "env": "CartPole-v1",
    "objective": "final_reward_mean",
    "direction": "maximize",
    "ppo": {"n_steps": 256, "batch_size": 64, "n_epochs": 4},
    "checkpoint": {"interval": 0},
    "evaluation": {"interval": 0, "final_episodes": 1},
}


class TimedPool:
    """A pool that adds up how long its tasks took in their processes."""

    def __init__(self, pool: Pool) -> None:
        self._pool, self.busy_s, self.ended = pool, 0.0, 0

    @property
    def num_slots(self) -> int:
        """Tasks that may run at a time."""
        return self._pool.num_slots

    @property
    def num_running(self) -> int:
        """Tasks that were started and have not ended."""
        return self._pool.num_running

    def start(self, task: RunTask) -> None:
        """Start a task."""
        self._pool.start(task)

    def wait(self, timeout_s: float) -> list[tuple[RunTask, RunReport]]:
        """The tasks that have ended."""
        found = self._pool.wait(timeout_s)
        self.busy_s += sum(report.elapsed_s for _, report in found)
        self.ended += len(found)
        return found

    def stop(self) -> None:
        """Ask every run to end."""
        self._pool.stop()


def run(place: Path, pool: Pool, steps: int, **changes: Any) -> dict[str, Any]:
    """Run a sweep on a pool that has started; its wall time, busy time and the scheduler's own CPU time."""
    file = place / "bench.toml"
    file.write_text(tomli_w.dumps({**RUN, "steps": steps, **changes}), encoding="utf-8")
    sweep = load_sweep(file)
    folder = create_folder(file, tempfile.mkdtemp(dir=place) + "/sweep", sweep)
    study = SweepStudy(folder.journal, "bench", sweep, is_writer=True)
    timed, cpu_s, began_s = TimedPool(pool), own_cpu_s(), time.monotonic()
    if not run_sweep(Scheduler(sweep, study, folder), timed):
        raise SystemExit("the sweep did not finish")
    wall_s = time.monotonic() - began_s
    return {
        "trials": len(study.trials),
        "complete": sum(trial.state == "complete" for trial in study.trials),
        "runs": timed.ended,
        "workers": pool.num_slots,
        "wall_s": wall_s,
        "run_s": timed.busy_s / timed.ended,
        "idle_share": 1.0 - timed.busy_s / (wall_s * min(pool.num_slots, timed.ended)),
        "scheduler_cpu_share": (own_cpu_s() - cpu_s) / timed.busy_s,
    }


def own_cpu_s() -> float:
    """CPU time of this process, without its children."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def warm(place: Path, num_workers: int) -> LocalPool:
    """A pool whose processes have imported everything and done one run each."""
    pool = LocalPool(num_workers, place / f"workers-{num_workers}")
    run(place, pool, 256, seeds=list(range(num_workers)))
    return pool


def measure_workers(place: Path, steps: int, rounds: int) -> dict[str, Any]:
    """The same independent runs on one process and on two, in turns: other load meets both."""
    pools = {count: warm(place, count) for count in (1, 2)}
    walls: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(rounds):
        for count, pool in pools.items():
            walls[count].append(run(place, pool, steps, seeds=[1, 2, 3, 4])["wall_s"])
    for pool in pools.values():
        pool.close()
    ratios = [one / two for one, two in zip(walls[1], walls[2], strict=True)]
    return {"one_s": walls[1], "two_s": walls[2], "ratios": ratios, "speedup": median(ratios)}


def measure_small(place: Path, steps: int, trials: int) -> dict[str, Any]:
    """Many short trials on two processes."""
    pool = warm(place, 2)
    space = {"ppo.learning_rate": {"low": 1e-4, "high": 1e-2, "log": True}}
    found = run(place, pool, steps, trials=trials, sampler="random", seeds=[1], space=space)
    pool.close()
    return found


def measure_ray(place: Path, steps: int, rounds: int) -> dict[str, Any]:
    """The same run on the local pool and as a Ray task on a node of this machine, in turns."""
    from ray.cluster_utils import Cluster

    from hotlap.sweeps.ray_pool import RayPool

    local = warm(place, 1)
    node = {"node_ip_address": "127.0.0.1", "include_dashboard": False, "object_store_memory": 80 << 20}
    cluster = Cluster()
    cluster.add_node(num_cpus=1, **node)
    folder = SweepFolder(place / "ray")
    folder.path.mkdir()
    remote = RayPool(cluster.address, folder, 1)
    run(place, remote, 256, seeds=[1])
    found: dict[str, list[dict[str, Any]]] = {"local": [], "ray": []}
    try:
        for _ in range(rounds):
            for name, pool in (("local", local), ("ray", remote)):
                found[name].append(run(place, pool, steps, seeds=[1]))
    finally:
        remote.close()
        cluster.shutdown()
        local.close()
    beyond_s = {name: [each["wall_s"] - each["run_s"] for each in runs] for name, runs in found.items()}
    extra_s = median(beyond_s["ray"]) - median(beyond_s["local"])
    return {
        "local_s": [each["wall_s"] for each in found["local"]],
        "ray_s": [each["wall_s"] for each in found["ray"]],
        "beyond_run_local_s": beyond_s["local"],  # sweep time beyond the run itself: less sensitive to other load
        "beyond_run_ray_s": beyond_s["ray"],
        "overhead_of_a_minute": extra_s / 60.0,
    }


MEASUREMENTS: dict[str, tuple[Callable[[Path, int, int], dict[str, Any]], int, int]] = {
    "workers": (measure_workers, 20_000, 3),
    "small": (measure_small, 1536, 1000),
    "ray": (measure_ray, 60_000, 2),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=MEASUREMENTS)
    parser.add_argument("--steps", type=int, help="steps of each run")
    parser.add_argument("--count", type=int, help="rounds, or trials of `small`")
    options = parser.parse_args(arguments)
    measure, steps, count = MEASUREMENTS[options.what]
    with tempfile.TemporaryDirectory() as place:
        found = measure(Path(place), options.steps or steps, options.count or count)
    found = {**found, "cores": os.cpu_count(), "load": os.getloadavg()[0]}
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
