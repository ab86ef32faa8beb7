"""A dataset on disk, as Minari reads it: `ID/data` with `main_data.hdf5` and `metadata.json`. Needs h5py, not Minari.

The same episodes give the same bytes: HDF5 keeps no times here, and nothing is compressed.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import Box
from numpy.typing import NDArray

from hotlap.atomic_files import DEVICE_FAULT, is_device_name, write_atomically
from hotlap.datasets.episodes import EPISODE_CONFIG, Columns, DatasetEpisode
from hotlap.envs.registration import RACER_ID
from hotlap.envs.spaces import ObservationName, action_space, observation_space
from hotlap.errors import DatasetError, InputFileError, OutputFileError, one_line
from hotlap.tracks.digest import track_digest

DATA_FILE, ABOUT_FILE = "main_data.hdf5", "metadata.json"
FORMAT_VERSION = "0.5.0"  # the version of Minari whose format this is; later ones read it
DATASET_ID = re.compile(r"(?:[A-Za-z0-9][\w-]*/)*[A-Za-z0-9][\w-]*-v\d{1,6}", re.ASCII)
_STEP_COLUMNS = ("actions", "rewards", "terminations", "truncations")
OWN_KEY = "hotlap"  # of what we add to Minari's metadata


def dataset_folder(root: Path, dataset_id: str) -> Path:
    """The folder that a dataset gets; an error if the id is none, or something is there already."""
    if not DATASET_ID.fullmatch(dataset_id):
        raise DatasetError(f"dataset id {dataset_id!r:.80}: write letters, digits, - and _, and a version: name-v0.")
    if any(is_device_name(part) for part in dataset_id.split("/")):
        raise DatasetError(f"dataset id {dataset_id!r:.80} {DEVICE_FAULT}. Choose another.")
    folder = root / dataset_id / "data"
    if folder.exists() or folder.is_symlink():
        raise OutputFileError(f"{folder}: is there already. Remove it, or choose another --id or --out.")
    return folder


class DatasetWriter:
    """Writes episodes into a draft; `finish` makes it the dataset. Without it the draft is removed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._draft = folder.with_name(f".{folder.name}.{os.getpid()}.partial")
        self.num_episodes = self.num_steps = 0

    def __enter__(self) -> "DatasetWriter":
        try:
            self._draft.mkdir(parents=True)
            self._file = h5py.File(self._draft / DATA_FILE, "w", track_order=True)
        except OSError as error:
            raise OutputFileError(
                f"{self.folder}: cannot be written ({error.strerror or one_line(error)}). Choose another --out."
            ) from None
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._file.close()
        shutil.rmtree(self._draft, ignore_errors=True)

    def add(self, episode: DatasetEpisode) -> None:
        """Write an episode; its last step is marked as truncated, since the car could drive on."""
        group = self._file.create_group(f"episode_{self.num_episodes}")
        group.attrs.update(self._attributes(episode))
        is_last = np.zeros(episode.num_steps, np.bool_)
        is_last[-1:] = True
        columns = episode.actions, episode.rewards, np.zeros_like(is_last), is_last
        for name, column in zip(_STEP_COLUMNS, columns, strict=True):
            group.create_dataset(name, data=column)
        group.create_dataset("observations", data=episode.observations)
        infos = group.create_group("infos")
        for name, column in episode.infos.items():
            infos.create_dataset(name, data=column)
        self.num_episodes += 1
        self.num_steps += episode.num_steps

    def _attributes(self, episode: DatasetEpisode) -> dict[str, Any]:
        return {
            "id": self.num_episodes,
            "seed": np.uint64(episode.seed % 2**64),
            "options/start": episode.start,
            "total_steps": episode.num_steps,
            "driver": episode.driver,
            "track": episode.track.track_id,
            "track_digest": track_digest(episode.track.nodes),
            "action_repeat": episode.action_repeat,
            "laps": episode.num_laps,
            "ended_by": episode.ended_by,
        }

    def finish(self, about: Mapping[str, Any], observation: ObservationName, track_id: str) -> None:
        """Write the metadata and give the dataset its name."""
        self._file.close()
        size_mb = round((self._draft / DATA_FILE).stat().st_size / 1e6, 1)
        metadata = {
            "total_episodes": self.num_episodes,
            "total_steps": self.num_steps,
            "data_format": "hdf5",
            "jpeg_encoding": False,
            "observation_space": space_text(observation_space(observation)),
            "action_space": space_text(action_space()),
            "env_spec": _environment(observation, track_id),
            "minari_version": FORMAT_VERSION,
            "dataset_size": size_mb,
            **about,
        }
        write_atomically(self._draft / ABOUT_FILE, (json.dumps(metadata, indent=1) + "\n").encode())
        self._draft.rename(self.folder)


def _environment(observation: ObservationName, track_id: str) -> str:
    """The environment that Minari makes again (`recover_environment`); of several tracks the first."""
    kwargs = {"track_id": track_id, "config": EPISODE_CONFIG, "observation": observation}
    return EnvSpec(RACER_ID, entry_point="hotlap.envs.racer:RacerEnv", kwargs=kwargs).to_json()


def space_text(space: Box) -> str:
    """A space as Minari writes it."""
    about = {"type": "Box", "dtype": str(space.dtype), "shape": list(space.shape)}
    return json.dumps({**about, "low": space.low.tolist(), "high": space.high.tolist()})


def read_metadata(folder: Path) -> dict[str, Any]:
    """The metadata of a dataset; `folder` is its own or the `data` in it."""
    path = _data_folder(folder) / ABOUT_FILE
    try:
        about: dict[str, Any] = json.loads(path.read_bytes())
    except OSError:
        raise InputFileError(f"{folder}: is no dataset, it has no {ABOUT_FILE}. Name the folder of one.") from None
    except ValueError:
        raise DatasetError(f"{path}: is no JSON. Record the dataset again.") from None
    if not isinstance(about, dict) or not isinstance(about.get(OWN_KEY), dict):
        raise DatasetError(f"{path}: was not written by `hotlap dataset record`. Name another dataset.")
    return about


def read_episodes(folder: Path) -> Iterator[tuple[dict[str, Any], Columns]]:
    """Attributes and columns of each episode; those of infos are called `infos/NAME`."""
    path = _data_folder(folder) / DATA_FILE
    try:
        with h5py.File(path, "r") as file:
            for number in range(len(file)):
                group = file[f"episode_{number}"]
                columns: Columns = {}
                group.visititems(lambda name, item, into=columns: _read_column(into, name, item))
                yield dict(group.attrs), columns
    except (OSError, KeyError, ValueError, RuntimeError) as error:
        raise DatasetError(f"{path}: is damaged ({one_line(error)}). Record the dataset again.") from None


def _read_column(columns: Columns, name: str, item: Any) -> None:
    if isinstance(item, h5py.Dataset):
        column: NDArray[Any] = item[()]
        columns[name] = column


def _data_folder(folder: Path) -> Path:
    return folder / "data" if (folder / "data").is_dir() else folder
