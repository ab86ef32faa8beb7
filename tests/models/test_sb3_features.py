"""What a racer's network sees inside an exported model."""

import numpy as np
import torch
from gymnasium.spaces import Box

from hotlap.models.sb3_features import RacerFeatures

SPACE = Box(-1.0, 1.0, (4,), np.float32)


def test_fourier_features_of_the_progress_are_appended():
    features = RacerFeatures(SPACE, lap_fourier=2, progress=3, normalizer=None, about={})
    assert features.features_dim == 8
    seen = features(torch.tensor([[0.1, 0.2, 0.3, 0.25]]))[0]
    expected = [0.1, 0.2, 0.3, 0.25, 1.0, 0.0, 0.0, -1.0]  # sines of a quarter and a half turn, then cosines
    np.testing.assert_allclose(seen.numpy(), expected, atol=1e-6)


def test_inputs_are_normalized_in_double_precision_and_clipped():
    normalizer = {"mean": [1.0] * 4, "var": [0.0, 1.0, 4.0, 4.0], "floor": 1e-8, "clip": 5.0}
    features = RacerFeatures(SPACE, lap_fourier=0, progress=3, normalizer=normalizer, about={})
    seen = features(torch.tensor([[1.0 + 2e-4, 2.0, 2.0, -90.0]]))[0]
    assert seen.dtype == torch.float32
    np.testing.assert_allclose(seen.numpy(), [2.0, 1.0, 0.5, -5.0], rtol=1e-3)
    assert features.state_dict() == {}  # rebuilt from its arguments
