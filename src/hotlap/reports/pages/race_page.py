"""The page on a race: who came in when, and how the gaps grew."""

from html import escape

from hotlap.evaluation.race_replay import RaceReplay
from hotlap.evaluation.races import RaceCounts
from hotlap.reports.classification import NOT_FINISHED, classification_table, classify
from hotlap.reports.formatting import counted
from hotlap.reports.html import Picture, render_document, render_headline, render_pictures, render_table
from hotlap.tracks.registry import Track


def render_race(replay: RaceReplay, counts: RaceCounts, track: Track, picture: Picture) -> str:
    """The page's HTML. All text is escaped."""
    title = f"{counted(len(replay.drivers), 'car')} on {track.name}"
    body = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{escape(describe(replay))}</p>",
        render_headline(_headline(replay, counts)),
        f'<section class="card"><h2>Classification</h2>{render_table(classification_table(replay.drivers, counts))}',
        "</section>",
        *render_pictures([picture]),
        f"<footer>{escape(track.track_id)}, {track.nodes.length_m:.0f} m. Driven again from the replay's inputs."
        " A contact closes in at more than 0.5 m/s; contacts of two cars within half a second are one.</footer>",
    ]
    return render_document(title, body)


def describe(replay: RaceReplay) -> str:
    """The race in a line."""
    return f"{counted(replay.laps, 'lap')} from a {replay.start} start, seed {replay.seed}."


def _headline(replay: RaceReplay, counts: RaceCounts) -> list[tuple[str, str]]:
    winner = classify(replay.drivers, counts)[0]
    return [
        ("winner", winner[1] if winner[3] != NOT_FINISHED else "nobody finished"),
        ("its time", winner[3]),
        ("contacts", str(int(counts.contacts[0].sum() + 1) // 2)),
        ("overtakes", str(int(counts.overtakes[0].sum()))),
    ]
