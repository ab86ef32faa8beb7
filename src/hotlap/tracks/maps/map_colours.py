"""The colours of track maps, which the report's charts share."""

BACKGROUND = "#14181f"
BADGE = "#2b323c"
RUNOFF = "#2a3b35"
WALL = "#8593a1"
ROAD = "#434a54"
EDGE = "#e8ecf0"
KERB_RED = "#d8433b"
TEXT = "#eef1f4"
FAINT = "#93a0ad"
ACCENT = "#ffc640"
MEDAL_COLOURS = {"gold": "#ffc640", "silver": "#c9d1d9", "bronze": "#cd8a52"}
SPEED_COLOURS = ("#ff4b4b", "#ff8f3f", "#ffd84a", "#5fe08a", "#3fc4ff")  # slow to fast
