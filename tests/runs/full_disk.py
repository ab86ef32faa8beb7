"""A file on a disk that gets full."""

import errno


class Disk:
    """A file on a disk with `room` bytes left; like a real one, it writes what fits before it fails."""

    def __init__(self, file, room):
        self.file, self.room = file, room

    def write(self, content):
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken = self.file.write(content[: self.room])
        self.room -= taken
        return taken

    def __getattr__(self, name):
        return getattr(self.file, name)
