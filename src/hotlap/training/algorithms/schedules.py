"""How settings change over a run."""


def decay(final_fraction: float, progress_remaining: float) -> float:
    """A factor that falls linearly from 1 at the start of the run to `final_fraction` at its end."""
    return final_fraction + (1.0 - final_fraction) * progress_remaining
