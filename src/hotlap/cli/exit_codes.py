"""The exit codes of all commands."""

BELOW_ASKED = 1  # finished, but below what was asked
COULD_NOT_RUN = 2
INTERRUPTED = 130  # after saving
