"""A run's folder as one block of bytes, for machines that share no folder."""

import io
import shutil
import tarfile
from pathlib import Path, PurePosixPath

from hotlap.errors import ArchiveError, OutputFileError
from hotlap.runs.run_lock import LOCK_NAME

_MAX_DEPTH = 2  # a run's folder has one level of folders: tensorboard and report


def pack_run(folder: Path) -> bytes:
    """Every file of a run's folder, its lock excepted. Not compressed: models and checkpoints are zip files."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for path in sorted(folder.rglob("*")):
            is_draft = path.name.startswith(".") and path.name.endswith(".partial")
            if path.is_file() and not path.is_symlink() and path.name != LOCK_NAME and not is_draft:
                tar.add(path, arcname=path.relative_to(folder).as_posix())
    return content.getvalue()


def unpack_run(content: bytes, folder: Path) -> None:
    """Replace a run's folder by the packed one, completely or not at all.

    Only plain files inside the folder are written; anything else in the archive is refused.
    """
    draft, old = (folder.with_name(f".{folder.name}.{ending}") for ending in ("partial", "old"))
    try:
        for left in (draft, old):
            shutil.rmtree(left, ignore_errors=True)
        draft.mkdir(parents=True)
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as tar:
            for member in tar:
                source = tar.extractfile(member) if member.isreg() else None
                if source is None:
                    raise ArchiveError(f"{folder}: {member.name!r:.80} in its archive is not a plain file.")
                target = draft / _checked(member.name, folder)
                target.parent.mkdir(exist_ok=True)
                with target.open("xb") as file:
                    shutil.copyfileobj(source, file)
        if folder.exists():
            folder.rename(old)
        draft.rename(folder)
        shutil.rmtree(old, ignore_errors=True)
    except (tarfile.TarError, EOFError) as error:
        raise ArchiveError(f"{folder}: its archive is damaged ({error}).") from None
    except OSError as error:
        raise OutputFileError(f"{folder}: cannot be written ({error.strerror}). Free some disk space.") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _checked(name: str, folder: Path) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not 1 <= len(path.parts) <= _MAX_DEPTH or "\\" in name:
        raise ArchiveError(f"{folder}: {name!r:.80} in its archive is not a file of a run.")
    return path
