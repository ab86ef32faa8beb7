"""The page of a model on the Hugging Face hub: what the hub reads, and a text for people."""

import json
import re
from collections.abc import Mapping
from typing import Any

from hotlap._version import __version__
from hotlap.models.model_file import ModelCard
from hotlap.reports.formatting import counted, gap_percent, percent, seconds

MODEL_NAME, CONFIG_NAME, EVALUATION_NAME, README_NAME = "model.zip", "config.toml", "evaluation.json", "README.md"
_METRICS = (
    "mean_reward",
    "gap_to_optimal",
    "median_lap_time_sec",
    "best_lap_time_sec",
    "completion_rate",
    "clean_lap_rate",
)
_STRANGE = re.compile(r"[^A-Za-z0-9 _.,:/()+-]")
_MAX_CHARS = 120


def make_hub_card(name: str, card: ModelCard, figures: Mapping[str, Any], video: str | None) -> str:
    """The README of the model's repository: YAML for the hub, then Markdown."""
    return f"---\n{_front_matter(name, card, figures)}---\n\n{_text(name, card, figures, video)}"


def _front_matter(name: str, card: ModelCard, figures: Mapping[str, Any]) -> str:
    """Metadata as the hub defines it; JSON's strings and numbers are YAML's, too."""
    data = card.environment if card.track is None else f"{card.environment} {plain(card.track)}"
    lines = [
        "library_name: hotlap",
        "pipeline_tag: reinforcement-learning",
        "tags:",
        *(f"- {tag}" for tag in ("reinforcement-learning", "deep-reinforcement-learning", "gymnasium", "hotlap")),
        f"- {json.dumps(card.algorithm)}",
        "model-index:",
        f"- name: {json.dumps(plain(name))}",
        "  results:",
        "  - task:",
        "      type: reinforcement-learning",
        "      name: reinforcement-learning",
        "    dataset:",
        f"      name: {json.dumps(data)}",
        f"      type: {json.dumps(card.environment)}",
        "    metrics:",
    ]
    for metric in _METRICS:
        if figures.get(metric) is not None:
            value = json.dumps(round(float(figures[metric]), 6))
            lines += [
                f"    - type: {metric}",
                f"      name: {metric}",
                f"      value: {value}",
                "      verified: false",
            ]
    return "\n".join(lines) + "\n"


def _text(name: str, card: ModelCard, figures: Mapping[str, Any], video: str | None) -> str:
    where = f" on {plain(card.track)}" if card.track is not None else ""
    rows = [
        ("Algorithm", f"{card.algorithm.upper()}, seed {card.seed}, {counted(card.step, 'decision')}"),
        ("Environment", f"`{card.environment}`{where}"),
        (
            "Network",
            f"{'-'.join(map(str, card.policy.net_arch or ())) or 'default'}, {card.policy.activation or 'default'}",
        ),
        ("Trained on", plain(card.trained_on) or "not known"),
        ("Weights", f"SHA-256 `{plain(card.weights_digest)}`"),
    ]
    if card.is_racer:
        rows += [
            ("Sees", f"layout `{plain(card.observation_layout or '')}`, {card.stack} at a time"),
            ("Decides", f"every {card.action_repeat} ticks of 1/60 s"),
            ("Physics", f"`{plain(card.physics or '')}`; another version refuses the model"),
        ]
    parts = [f"# {plain(name)}", f"A driver trained with Hotlap {__version__}.", _table(("", ""), rows)]
    parts += ["## Evaluation", _evaluation(figures)]
    if video is not None:
        shown = f'<video controls src="{video}"></video>' if video.endswith(".mp4") else f"![a lap]({video})"
        parts += ["## A lap", shown]
    commands = [f"hotlap evaluate {MODEL_NAME}", *([f"hotlap race {MODEL_NAME} champion"] if card.is_racer else [])]
    parts += ["## Use it", "```sh\n" + "\n".join(['pip install "hotlap[train]"', *commands]) + "\n```"]
    parts.append("The model file holds JSON and safetensors, no pickle.")
    return "\n\n".join(parts) + "\n"


def _evaluation(figures: Mapping[str, Any]) -> str:
    """The figures as a table, with how they were measured."""
    if "completion_rate" not in figures:
        rows = [
            ("mean return", f"{figures['mean_reward']:.2f}"),
            ("standard deviation", f"{figures['std_reward']:.2f}"),
            ("mean length", f"{figures['mean_episode_length']:.0f} steps"),
        ]
        return _table((counted(figures["episodes"], "episode"), ""), rows)
    rows = [
        ("completed", percent(figures["completion_rate"])),
        ("clean laps", percent(figures["clean_lap_rate"])),
        ("median clean flying lap", seconds(figures["median_lap_time_sec"])),
        ("best", seconds(figures["best_lap_time_sec"])),
        ("optimal lap", seconds(figures.get("optimal_lap_time_sec"))),
        ("gap to the optimal lap", gap_percent(figures["gap_to_optimal"], 2)),
        ("from the line: standing lap", seconds(figures.get("standing_lap_time_sec"))),
        ("from the line: flying lap", seconds(figures.get("line_lap_time_sec"))),
    ]
    starts = f"{counted(figures['episodes'], 'random start')}, seed {figures['seed']}"
    return _table((starts, ""), rows) + "\n\nThe optimal lap is the fastest that the physics allows."


def _table(heads: tuple[str, str], rows: list[tuple[str, str]]) -> str:
    lines = [f"| {heads[0]} | {heads[1]} |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in rows)]
    return "\n".join(lines)


def plain(text: str) -> str:
    """Text of a model file, which may be a stranger's, without what means something in YAML, Markdown or HTML."""
    return _STRANGE.sub("?", text)[:_MAX_CHARS]
