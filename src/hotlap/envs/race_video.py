"""A drive or a race as a film: MP4 by OpenCV, or GIF."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from hotlap.atomic_files import atomic_write
from hotlap.envs.race_fleet import RaceFleet
from hotlap.envs.rendering import FRAME_PX, draw_race
from hotlap.errors import ConfigError, OutputFileError
from hotlap.sim.vehicle import TICKS_PER_SECOND

MP4_FPS, GIF_FPS = 20, 10
GIF_PX = 300
SUFFIXES = (".mp4", ".gif")
MAX_S = 600.0  # a longer drive is cut off


def check_suffix(path: Path) -> None:
    """Refuse a file that is no film."""
    if path.suffix.lower() not in SUFFIXES:
        raise ConfigError(f"--video {path}: the name must end in {' or '.join(SUFFIXES)}.")


class RaceVideo:
    """Draws frames while cars are driven, and writes the film."""

    def __init__(self, path: Path) -> None:
        check_suffix(path)
        self._path, self._is_gif = path, path.suffix.lower() == ".gif"
        self._fps = GIF_FPS if self._is_gif else MP4_FPS
        self._next_tick = 0
        self._frames: list[Any] = []
        self._draft = path.with_name(f".{path.stem}.draft{path.suffix}")  # OpenCV knows the format by the ending
        self._writer = None if self._is_gif else _open_mp4(self._draft, path)

    def __enter__(self) -> "RaceVideo":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Write the film; if the drive was interrupted, leave what was there before."""
        if kind is None:
            self.close()
        elif self._writer is not None:
            self._writer.release()
            self._draft.unlink(missing_ok=True)

    def add(self, fleet: RaceFleet) -> None:
        """Draw a frame of a race if it is time for one."""
        tick = int(fleet.entrants["tick"][0])
        self.add_frame(tick, lambda: draw_race(fleet.tracks[0], fleet.states, fleet.entrants))

    def add_frame(self, tick: int, draw: Callable[[], NDArray[np.uint8]]) -> None:
        """Add the frame that `draw` makes, if it is time for one."""
        if tick < self._next_tick or tick > MAX_S * TICKS_PER_SECOND:
            return
        self._next_tick += TICKS_PER_SECOND // self._fps
        frame = draw()
        if self._writer is not None:
            self._writer.write(np.ascontiguousarray(frame[:, :, ::-1]))
        else:
            small = Image.fromarray(frame).resize((GIF_PX, GIF_PX))
            self._frames.append(small.convert("P", palette=Image.Palette.ADAPTIVE, colors=64))

    def close(self) -> None:
        """Put the film into its place."""
        if self._writer is not None:
            self._writer.release()
            self._draft.replace(self._path)
        elif self._frames:
            first, *others = self._frames
            with atomic_write(self._path) as file:
                first.save(file, "GIF", save_all=True, append_images=others, duration=1000 // self._fps, loop=0)


def _open_mp4(draft: Path, path: Path) -> Any:
    try:
        import cv2
    except ImportError:
        raise ConfigError("--video: MP4 needs OpenCV (pip install opencv-python). Or write a .gif.") from None
    writer = cv2.VideoWriter(str(draft), cv2.VideoWriter.fourcc(*"mp4v"), MP4_FPS, (FRAME_PX, FRAME_PX))
    if not writer.isOpened():
        raise OutputFileError(f"--video {path}: cannot be written. Choose another folder.")
    return writer
