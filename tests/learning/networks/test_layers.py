import torch

from hotlap.learning.networks.layers import layer_pairs, linear_layers, named_weights


def test_layers_have_one_output_per_width_and_are_drawn_in_order():
    torch.manual_seed(3)
    layers = linear_layers(5, (7, 2))
    assert [tuple(layer.weight.shape) for layer in layers] == [(7, 5), (2, 7)]
    torch.manual_seed(3)
    assert torch.equal(torch.nn.Linear(5, 7).bias, layers[0].bias)
    assert linear_layers(5, ()) == []


def test_named_weights_are_found_again_as_pairs():
    first, second = linear_layers(2, (3, 1))
    weights = named_weights({"a": first, "b": second})
    assert list(weights) == ["a.weight", "a.bias", "b.weight", "b.bias"]
    assert not any(weight.requires_grad for weight in weights.values())
    [(weight, bias)] = layer_pairs(weights.__getitem__, ["b"])
    assert torch.equal(weight, second.weight)
    assert torch.equal(bias, second.bias)
