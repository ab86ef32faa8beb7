"""The common frame of all report charts: size, panels, title, legend, and PNG output."""

from collections.abc import Sequence

from hotlap.drawing.axes import Axes, AxesStyle, Axis
from hotlap.drawing.figure import Figure
from hotlap.drawing.lettering import fitting_size, text_width_in
from hotlap.reports.html import PAGE_COLOURS
from hotlap.tracks.maps.map_colours import BACKGROUND, BADGE, FAINT, TEXT

DPI = 190
DRIVER, OPTIMUM, LOSS, GAIN = (PAGE_COLOURS[name] for name in ("driver", "optimum", "loss", "gain"))

WIDTH_IN = 9.4
LEFT_IN, RIGHT_IN = 0.85, 0.35
TITLE_IN, FOOT_IN = 0.95, 0.65
PLOT_IN = WIDTH_IN - LEFT_IN - RIGHT_IN
_GAP_IN = 0.22
_FIRST_IN, _SECOND_IN = 0.38, 0.70  # lines of the title, from the top
_MARGIN_IN = 0.45
LEGEND_IN = 0.27  # height of a legend line
_LEGEND_PT = 10.0
STYLE = AxesStyle(grid=BADGE, text=FAINT)
_MAX_NAME_LENGTH = 40


def new_chart(
    heights_in: Sequence[float],
    *,
    top_in: float,
    limit: float,
    x_label: str,
    gap_in: float = _GAP_IN,
) -> tuple[Figure, list[Axes]]:
    """Panels in a column on a common x axis from 0 to `limit`, with `top_in` free above and `gap_in` between them."""
    figure = Figure(WIDTH_IN, top_in + sum(heights_in) + gap_in * (len(heights_in) - 1) + FOOT_IN, BACKGROUND)
    for height_in in heights_in:
        x = Axis(limits=(0.0, limit), max_intervals=10, has_names=False, has_grid=False)
        y = Axis(max_intervals=max(round(height_in / 0.3), 2))
        figure.add_axes(Axes(LEFT_IN, top_in, PLOT_IN, height_in, STYLE, x, y))
        top_in += height_in + gap_in
    lowest = figure.axes[-1].x
    lowest.has_names, lowest.label = True, x_label
    return figure, figure.axes


def label_panel(axes: Axes, text: str) -> None:
    """Label the y axis, at the same distance in all panels however wide their tick labels are."""
    axes.y.label, axes.y.label_gap_in = text, 0.68


def write_title(figure: Figure, title: str, subtitle: str, *, colour: str = "") -> None:
    """The title and the line below it, after a colour swatch if `colour` is given."""
    left_in = _MARGIN_IN
    if colour:
        draw_swatch(figure, left_in, _FIRST_IN, colour)
        left_in += 0.42
    size_pt = fitting_size(title, 18.0, 0.60 * figure.width_in, is_bold=True)
    figure.text(title, left_in, _FIRST_IN, TEXT, size_pt, is_bold=True)
    figure.text(
        subtitle, left_in, _SECOND_IN, FAINT, fitting_size(subtitle, 10.5, figure.width_in - left_in - RIGHT_IN)
    )


def write_driver_legend(figure: Figure, driver_name: str) -> None:
    """The colours of driver and optimum, to the right of the title."""
    for name, colour, down_in in ((driver_name, DRIVER, _FIRST_IN), ("optimum", OPTIMUM, _SECOND_IN)):
        draw_swatch(figure, figure.width_in - 0.70, down_in, colour)
        size_pt = fitting_size(name, 11.0, 0.30 * figure.width_in)
        figure.text(name, figure.width_in - 0.82, down_in, TEXT, size_pt, align="right")


def legend_height_in(names: Sequence[str]) -> float:
    """The height (inches) that a legend needs."""
    return LEGEND_IN * len(_legend_lines(names))


def write_legend(figure: Figure, entries: Sequence[tuple[str, str]], *, down_in: float = TITLE_IN) -> None:
    """Names and their colours, `down_in` below the top of the figure."""
    for row, line in enumerate(_legend_lines([name for name, _ in entries])):
        left_in, middle_in = _MARGIN_IN, down_in + LEGEND_IN * (row + 0.5)
        for index in line:
            name, colour = entries[index]
            draw_swatch(figure, left_in, middle_in, colour)
            figure.text(name, left_in + 0.38, middle_in, TEXT, _LEGEND_PT)
            left_in += _entry_in(name)


def _legend_lines(names: Sequence[str]) -> list[list[int]]:
    """The indices of the names in each line of a legend."""
    lines: list[list[int]] = []
    used_in = 0.0
    for index, name in enumerate(names):
        if not lines or used_in + _entry_in(name) > WIDTH_IN - _MARGIN_IN:
            lines.append([])
            used_in = 0.0
        lines[-1].append(index)
        used_in += _entry_in(name)
    return lines


def _entry_in(name: str) -> float:
    return 0.68 + text_width_in(name, _LEGEND_PT)


def draw_swatch(figure: Figure, left_in: float, down_in: float, colour: str) -> None:
    """A short stroke of colour, as in a legend."""
    figure.line((left_in, left_in + 0.3), down_in, colour, 3.0)


def short_name(name: str) -> str:
    """A name on one line, cut to fit a title."""
    line = " ".join("".join(c if c.isprintable() else " " for c in name).split()) or "driver"
    return line if len(line) <= _MAX_NAME_LENGTH else line[: _MAX_NAME_LENGTH - 1] + "…"


def to_png(figure: Figure) -> bytes:
    """The figure as PNG bytes."""
    return figure.to_png(DPI)
