"""The common frame of all report charts: size, panels, title, legend, and PNG output."""

from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

from hotlap.reports.html import PAGE_COLOURS
from hotlap.tracks.maps.map_colours import BACKGROUND, BADGE, FAINT, TEXT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
_GLYPH_IN = 0.083  # width of a letter in a legend
_MAX_NAME_LENGTH = 40


def new_chart(
    heights_in: Sequence[float],
    *,
    top_in: float,
    limit: float,
    x_label: str,
    gap_in: float = _GAP_IN,
) -> tuple["Figure", list["Axes"]]:
    """Panels in a column on a common x axis from 0 to `limit`, with `top_in` free above and `gap_in` between them."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    full_in = top_in + sum(heights_in) + gap_in * (len(heights_in) - 1) + FOOT_IN
    figure = Figure(figsize=(WIDTH_IN, full_in), facecolor=BACKGROUND)
    FigureCanvasAgg(figure)
    panels: list[Axes] = []
    upper_in = full_in - top_in
    for height_in in heights_in:
        corner = (LEFT_IN / WIDTH_IN, (upper_in - height_in) / full_in)
        axes = figure.add_axes((*corner, PLOT_IN / WIDTH_IN, height_in / full_in), facecolor=BACKGROUND)
        axes.set_xlim(0.0, limit)
        axes.tick_params(colors=FAINT, labelsize=10, length=0, labelbottom=False)
        axes.grid(axis="y", color=BADGE, linewidth=0.8, zorder=0)
        axes.spines[:].set_visible(False)
        panels.append(axes)
        upper_in -= height_in + gap_in
    panels[-1].tick_params(labelbottom=True)
    panels[-1].set_xlabel(x_label, color=FAINT, fontsize=10)
    return figure, panels


def label_panel(axes: "Axes", text: str) -> None:
    """Label the y axis, at the same distance in all panels however wide their tick labels are."""
    axes.set_ylabel(text, color=FAINT, fontsize=10)
    axes.yaxis.set_label_coords(-0.62 / PLOT_IN, 0.5)


def write_title(figure: "Figure", title: str, subtitle: str, *, colour: str = "") -> None:
    """The title and the line below it, after a colour swatch if `colour` is given."""
    width, height = figure.get_figwidth(), figure.get_figheight()
    text: dict[str, Any] = {"va": "center", "parse_math": False}
    indent_in = _MARGIN_IN
    if colour:
        draw_swatch(figure, indent_in, _FIRST_IN, colour)
        indent_in += 0.42
    size = min(18.0, 0.60 * width * 72.0 / (0.67 * max(len(title), 1)))
    figure.text(indent_in / width, 1.0 - _FIRST_IN / height, title, fontsize=size, color=TEXT, weight="bold", **text)
    figure.text(indent_in / width, 1.0 - _SECOND_IN / height, subtitle, fontsize=10.5, color=FAINT, **text)


def write_driver_legend(figure: "Figure", driver_name: str) -> None:
    """The colours of driver and optimum, to the right of the title."""
    width, height = figure.get_figwidth(), figure.get_figheight()
    for name, colour, down_in in ((driver_name, DRIVER, _FIRST_IN), ("optimum", OPTIMUM, _SECOND_IN)):
        draw_swatch(figure, width - 0.70, down_in, colour)
        size = min(11.0, 0.30 * width * 72.0 / (0.67 * len(name)))
        place = (1.0 - 0.82 / width, 1.0 - down_in / height)
        figure.text(*place, name, fontsize=size, color=TEXT, ha="right", va="center", parse_math=False)


def legend_height_in(names: Sequence[str]) -> float:
    """The height (inches) that a legend needs."""
    return LEGEND_IN * len(_legend_lines(names))


def write_legend(figure: "Figure", entries: Sequence[tuple[str, str]], *, down_in: float = TITLE_IN) -> None:
    """Names and their colours, `down_in` below the top of the figure."""
    width, height = figure.get_figwidth(), figure.get_figheight()
    for row, line in enumerate(_legend_lines([name for name, _ in entries])):
        left_in, middle_in = _MARGIN_IN, down_in + LEGEND_IN * (row + 0.5)
        for index in line:
            name, colour = entries[index]
            draw_swatch(figure, left_in, middle_in, colour)
            place = ((left_in + 0.38) / width, 1.0 - middle_in / height)
            figure.text(*place, name, fontsize=10, color=TEXT, va="center", parse_math=False)
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
    return 0.62 + _GLYPH_IN * len(name)


def draw_swatch(figure: "Figure", left_in: float, down_in: float, colour: str) -> None:
    """A short stroke of colour, as in a legend."""
    from matplotlib.lines import Line2D

    width, height = figure.get_figwidth(), figure.get_figheight()
    y = 1.0 - down_in / height
    figure.add_artist(Line2D((left_in / width, (left_in + 0.3) / width), (y, y), color=colour, linewidth=3.0))


def short_name(name: str) -> str:
    """A name on one line, cut to fit a title."""
    line = " ".join("".join(c if c.isprintable() else " " for c in name).split()) or "driver"
    return line if len(line) <= _MAX_NAME_LENGTH else line[: _MAX_NAME_LENGTH - 1] + "…"


def to_png(figure: "Figure") -> bytes:
    """The figure as PNG bytes."""
    content = BytesIO()
    figure.savefig(content, dpi=DPI, format="png", facecolor=BACKGROUND)
    return content.getvalue()
