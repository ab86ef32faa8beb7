"""Write the mean of several models of one training, as the champions and the generalist are.

usage: python tools/average_models.py OUT.zip MODEL.zip MODEL.zip …

Models of one training lie close together, and their mean fails at fewer starts than most of them. The card of the new
model is that of the last one. Means of models from different trainings drive nothing.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from hotlap.errors import ConfigError, HotlapError
from hotlap.models.model_file import Arrays, read_model, write_model


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the mean; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT.zip")
    parser.add_argument("models", type=Path, nargs="+", metavar="MODEL.zip")
    options = parser.parse_args(arguments)
    try:
        models = [read_model(path) for path in options.models]
        for model in models[1:]:
            if not model.card.config_digest or model.card.config_digest != models[0].card.config_digest:
                raise ConfigError(
                    f"{model.path}: is of another training than {models[0].path}. Give models of one run."
                )
        weights, normalizer = (mean([getattr(model, part) for model in models]) for part in ("weights", "normalizer"))
        write_model(options.out, replace(models[-1], path=options.out, weights=weights, normalizer=normalizer))
    except HotlapError as error:
        print(f"average_models: {error}", file=sys.stderr)
        return 2
    print(f"{options.out}: the mean of {len(models)} models")
    return 0


def mean(models: Sequence[Arrays]) -> Arrays:
    """The mean of each array, computed in float64."""
    return {
        name: np.asarray(np.mean([model[name].astype(np.float64) for model in models], axis=0), first.dtype)
        for name, first in models[0].items()
    }


if __name__ == "__main__":
    sys.exit(main())
