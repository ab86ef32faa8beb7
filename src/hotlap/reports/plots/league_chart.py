"""A league as a picture: every driver's Elo with its interval."""

from collections.abc import Sequence

from hotlap.evaluation.league import League
from hotlap.reports.plots.chart import TITLE_IN, new_chart, to_png, write_title
from hotlap.reports.plots.panels import colour_of
from hotlap.tracks.maps.map_colours import BADGE, TEXT

_ROW_IN = 0.55
_GLYPH_IN = 0.083  # width of a letter of a name; the chart's own margin has room for a few
_MARGIN = 0.06  # of the axis, beyond the intervals


def draw_league(league: League, names: Sequence[str]) -> bytes:
    """A PNG: the ratings of the drivers and their 95 % intervals, the best on top."""
    drivers = league.drivers
    low, high = min(one.elo_low for one in drivers), max(one.elo_high for one in drivers)
    margin = _MARGIN * max(high - low, 1.0)
    figure, (axes,) = new_chart(
        [_ROW_IN * len(drivers) + 0.2], top_in=TITLE_IN, limit=1.0, x_label="Elo, the drivers' mean is 1,500"
    )
    box = axes.get_position()
    shift = max(0.2, _GLYPH_IN * max(map(len, names)) - 0.5) / figure.get_figwidth()
    axes.set_position((box.x0 + shift, box.y0, box.width - shift, box.height))
    axes.set_xlim(low - margin, high + margin)
    for row, one in enumerate(drivers):
        colour = colour_of(row)
        axes.plot((one.elo_low, one.elo_high), (row, row), color=colour, linewidth=3.0, solid_capstyle="round")
        axes.plot([one.elo], [row], "o", color=colour, markersize=10)
        label = f"{one.elo:,.0f}"
        axes.annotate(label, (one.elo, row), (0, 9), textcoords="offset points", ha="center", color=TEXT, fontsize=10)
    axes.set_ylim(len(drivers) - 0.5, -0.7)
    axes.set_yticks(range(len(drivers)), list(names))
    for text in axes.get_yticklabels():
        text.set_color(TEXT)
        text.set_parse_math(False)
    axes.grid(axis="x", color=BADGE, linewidth=0.8)
    axes.grid(axis="y", visible=False)
    write_title(figure, "Ratings", "points are ratings, bars their 95 % intervals")
    return to_png(figure)
