"""`hotlap bench`: measure speed on this machine."""

from dataclasses import asdict
from typing import Annotated, Any, Literal

import typer

from hotlap.cli import exit_codes
from hotlap.cli.output import Json, counted, print_json
from hotlap.cli.run_monitor import log_to_stderr

bench_app = typer.Typer(help="Measure speed on this machine.", no_args_is_help=True)

NumEnvs = Annotated[int, typer.Option(min=1, help="Cars in the batch.")]


@bench_app.command("sim")
def bench_sim(
    num_envs: NumEnvs = 1024,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads; default: all cores.")] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    track: Annotated[str, typer.Option(help="Track id.")] = "track-01",
    observation: Annotated[
        Literal["rays", "road", "road-2", "race"] | None,
        typer.Option(help="What a car sees; default: rays, with --num-cars race."),
    ] = None,
    num_cars: Annotated[int | None, typer.Option(help="Cars in each race; default: every car is alone.")] = None,
    seconds: Annotated[float, typer.Option(help="How long to measure.")] = 3.0,
    as_json: Json = False,
) -> None:
    """Steps per second of the simulator, with observations, rewards, lap counting and autoreset.

    Example: hotlap bench sim --num-envs 1024 --threads 2 --json

    With --num-cars 8 the cars of the batch race in eights.
    """
    from hotlap.bench.races import measure_races
    from hotlap.bench.simulator import measure_sim
    from hotlap.errors import ConfigError

    if num_cars is not None:
        if observation not in (None, "race"):
            raise ConfigError(f"--observation: cars of a race see 'race', got {observation!r}. Leave it out.")
        result = measure_races(num_cars, num_envs, threads, device, track, seconds)
    elif observation == "race":
        raise ConfigError("--observation race: a car needs a race to see others. Give --num-cars, too.")
    else:
        result = measure_sim(num_envs, threads, device, track, seconds, observation or "rays")
    if as_json:
        print_json(asdict(result))
        return
    place = result.device if result.threads is None else f"{counted(result.threads, 'thread')}, {result.device}"
    races = "" if result.cars_per_race is None else f" in races of {result.cars_per_race}"
    cars = f"{counted(result.num_envs, 'car')}{races}"
    print(f"{cars}, {place}, {result.observation}: {result.steps_per_sec:,.0f} steps/s")
    if result.step_usec is None:
        return
    print(
        f"one RacerEnv: {result.single_env_steps_per_sec:,.0f} steps/s"
        f" ({result.step_usec:.1f} µs a step, {result.reset_usec:.1f} µs a reset)"
    )


@bench_app.command("train")
def bench_train(
    num_envs: NumEnvs = 512,
    rollouts: Annotated[int, typer.Option(help="Rollouts to measure, after one for warm-up.")] = 20,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    track: Annotated[str, typer.Option(help="Track id.")] = "track-01",
    as_json: Json = False,
) -> None:
    """Decisions per second of training with the recipe racer-ppo, and of stable-baselines3's PPO over the same cars.

    Example: hotlap bench train --json
    """
    from hotlap.bench.training import measure_training

    with log_to_stderr(verbose=False, quiet=False):
        result = measure_training(num_envs, rollouts, track, device)
    if as_json:
        print_json(asdict(result))
        return
    memory = "" if result.peak_memory_mb is None else f", peak memory {result.peak_memory_mb:,.0f} MB"
    print(f"{counted(result.num_envs, 'car')}: {result.decisions_per_sec:,.0f} decisions/s, learning included{memory}")
    print(
        f"stable-baselines3's PPO: {result.stock_decisions_per_sec:,.0f} decisions/s;"
        f" ours is {result.ratio:.1f} times as fast"
    )


@bench_app.command("peers")
def bench_peers(
    num_envs: NumEnvs = 1024,
    seconds: Annotated[float, typer.Option(help="How long to measure each.")] = 3.0,
    as_json: Json = False,
) -> None:
    """Hotlap and the other simulators installed, on the same machine in the same run.

    Example: hotlap bench peers --json
    """
    from hotlap.bench.peers import measure_peers

    result = measure_peers(num_envs, seconds)
    if as_json:
        print_json(result)
        return
    print(f"{'hotlap, 1 thread':<34}{result['hotlap_one_thread_steps_per_sec']:>12,.0f} steps/s")
    print(f"{'hotlap, all threads':<34}{result['hotlap_all_threads_steps_per_sec']:>12,.0f} steps/s")
    for peer in result["peers"]:
        if peer["steps_per_sec"] is None:
            print(f"{peer['name']:<34}{'absent':>12}  {peer['absent']}")
        else:
            print(
                f"{peer['name']:<34}{peer['steps_per_sec']:>12,.0f} steps/s"
                f"  hotlap is {peer['hotlap_one_thread_times']:,.0f} times as fast on one thread ({peer['note']})"
            )


@bench_app.command("bridge")
def bench_bridge(
    steps: Annotated[int | None, typer.Option(min=1, help="Steps to measure.")] = None,
    target: Annotated[float | None, typer.Option(min=0.0, help="Steps per second required.")] = None,
    warmup: Annotated[int | None, typer.Option(min=0, help="Steps before the measurement.")] = None,
    url: Annotated[str | None, typer.Option(help="URL of the bridge; default: this machine's.")] = None,
    as_json: Json = False,
) -> None:
    """Steps per second through a running bridge: one car, random actions. Exit code 1 below the target.

    Example: hotlap bench bridge --steps 5000 --target 2000 --json
    """
    from hotlap.bridge.benchmark import run_benchmark

    chosen: dict[str, Any] = {"steps": steps, "target": target, "warmup": warmup}
    result = run_benchmark(**{name: value for name, value in chosen.items() if value is not None}, url=url)
    if as_json:
        print_json(result)
    else:
        print(
            f"{result['steps_per_sec']:,.0f} steps/s; round trip mean {result['mean_ms']:.3f} ms,"
            f" p50 {result['p50_ms']:.3f} ms, p95 {result['p95_ms']:.3f} ms, p99 {result['p99_ms']:.3f} ms"
        )
        print(f"{'PASS' if result['passed'] else 'FAIL'} (target: {result['target']:,.0f} steps/s)")
    if not result["passed"]:
        raise typer.Exit(exit_codes.BELOW_ASKED)
