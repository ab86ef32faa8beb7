"""How the learning rate changes over a run."""

# The rate is multiplied or divided by this after an update, within these multiples of its initial value.
LR_FACTOR = 1.5
LR_SCALE_RANGE = (0.02, 20.0)


def linear_decay(final_fraction: float, progress_remaining: float) -> float:
    """From 1 at the start of a run to `final_fraction` at its end."""
    return final_fraction + (1.0 - final_fraction) * progress_remaining


def adapt_lr_scale(scale: float, kl: float, desired_kl: float) -> float:
    """The next multiple of the initial rate: less where the last update changed the policy too much, else more."""
    low, high = LR_SCALE_RANGE
    if kl > 2.0 * desired_kl:
        return max(scale / LR_FACTOR, low)
    if kl < 0.5 * desired_kl:
        return min(scale * LR_FACTOR, high)
    return scale
