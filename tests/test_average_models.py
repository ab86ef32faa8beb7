"""The tool that averages the weights of models."""

from dataclasses import replace

import numpy as np

import average_models
from hotlap.models.model_file import read_model, write_model
from hotlap.models.shipped_models import SHIPPED_FOLDER

MODEL = SHIPPED_FOLDER / "track-01.zip"


def test_the_mean_has_the_mean_of_every_weight_and_the_last_card(tmp_path, capsys):
    genuine = read_model(MODEL)
    tripled = {name: 3.0 * weights for name, weights in genuine.weights.items()}
    write_model(tmp_path / "3.zip", replace(genuine, weights=tripled, card=replace(genuine.card, step=7)))
    out = tmp_path / "mean.zip"
    assert average_models.main([str(out), str(MODEL), str(tmp_path / "3.zip")]) == 0
    assert "the mean of 2 models" in capsys.readouterr().out
    found = read_model(out)
    assert found.card.step == 7
    for name, weights in genuine.weights.items():
        np.testing.assert_allclose(found.weights[name], 2.0 * weights, rtol=1e-6)
        assert found.weights[name].dtype == weights.dtype
    for name, values in genuine.normalizer.items():
        np.testing.assert_array_equal(found.normalizer[name], values)


def test_models_of_two_trainings_are_refused(tmp_path, capsys):
    out = tmp_path / "mean.zip"
    assert average_models.main([str(out), str(MODEL), str(MODEL.with_name("track-02.zip"))]) == 2
    assert "track-02.zip: is of another training than" in capsys.readouterr().err
    assert not out.exists()


def test_a_missing_model_is_one_line(tmp_path, capsys):
    assert average_models.main([str(tmp_path / "mean.zip"), str(tmp_path / "no.zip")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
