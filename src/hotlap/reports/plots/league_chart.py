"""A league as a picture: every driver's Elo with its interval."""

from collections.abc import Sequence

from hotlap.drawing.axes import AxesStyle
from hotlap.drawing.lettering import text_width_in
from hotlap.evaluation.league import League
from hotlap.reports.plots.chart import LEFT_IN, TITLE_IN, new_chart, to_png, write_title
from hotlap.reports.plots.panels import colour_of
from hotlap.tracks.maps.map_colours import BADGE, FAINT, TEXT

_ROW_IN = 0.55
_NAME_GAP_IN = 0.45  # left and right of the names
_MARGIN = 0.06  # of the axis, beyond the intervals


def draw_league(league: League, names: Sequence[str]) -> bytes:
    """A PNG: the ratings of the drivers and their 95 % intervals, the best on top."""
    drivers = league.drivers
    low, high = min(one.elo_low for one in drivers), max(one.elo_high for one in drivers)
    margin = _MARGIN * max(high - low, 1.0)
    figure, (axes,) = new_chart(
        [_ROW_IN * len(drivers) + 0.2], top_in=TITLE_IN, limit=1.0, x_label="Elo, the drivers' mean is 1,500"
    )
    shift_in = max(0.2, max(text_width_in(name, 10.0) for name in names) + _NAME_GAP_IN - LEFT_IN)
    axes.left_in, axes.width_in = axes.left_in + shift_in, axes.width_in - shift_in
    axes.style = AxesStyle(grid=BADGE, text=FAINT, tick_names=TEXT)
    axes.x.limits, axes.x.has_grid = (low - margin, high + margin), True
    axes.y.limits, axes.y.is_reversed, axes.y.has_grid = (-0.7, len(drivers) - 0.5), True, False
    axes.y.ticks, axes.y.names = range(len(drivers)), list(names)
    for row, one in enumerate(drivers):
        colour = colour_of(row)
        axes.line((one.elo_low, one.elo_high), row, colour, 3.0)
        axes.dots(one.elo, row, colour, 10.0)
        axes.text(f"{one.elo:,.0f}", one.elo, row, TEXT, align="centre", vertical="baseline", offset_pt=(0.0, 9.0))
    write_title(figure, "Ratings", "points are ratings, bars their 95 % intervals")
    return to_png(figure)
