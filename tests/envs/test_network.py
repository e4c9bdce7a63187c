"""A network inside an environment: what torch computes, row by row the same bits."""

import itertools

import numpy as np
import pytest
import torch
from torch.nn.utils import parameters_to_vector

from surefoot.envs.network import Network
from surefoot.errors import ConfigError

ACTIVATIONS = {"tanh": torch.nn.Tanh, "relu": torch.nn.ReLU, "elu": torch.nn.ELU, "leaky_relu": torch.nn.LeakyReLU}


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("sizes", [(3, 2), (1, 1), (5, 17, 3), (44, 256, 256, 18)])
def test_it_computes_what_torch_does(sizes, activation):
    torch.manual_seed(1)
    layers = [torch.nn.Linear(*pair) for pair in itertools.pairwise(sizes)]
    between = [part for layer in layers[:-1] for part in (layer, ACTIVATIONS[activation]())]
    reference = torch.nn.Sequential(*between, layers[-1], torch.nn.Tanh())
    network = Network(sizes, activation, "tanh")
    weights = parameters_to_vector(reference.parameters()).detach()
    assert network.num_values == len(weights)
    network.set(weights)
    inputs = torch.randn(7, sizes[0])
    with torch.no_grad():
        torch.testing.assert_close(torch.from_numpy(network.run(inputs)), reference(inputs), rtol=1e-5, atol=1e-6)
    each = np.concatenate([network.run(row[None]) for row in inputs])
    assert np.array_equal(network.run(inputs), each), "a row depends on nothing but itself"
    assert np.array_equal(network.run(inputs[0]), each[0])


def test_weights_are_0_until_they_are_set():
    assert Network((2, 3, 1)).run([[1.0, 2.0]]).tolist() == [[0.0]]


def test_what_makes_no_sense_is_refused_and_nothing_is_set():
    network = Network((2, 1))
    network.set([1.0, 2.0, 3.0])
    for values in ([1.0], [1.0, 2.0, np.nan], [1.0, 2.0, 1e300]):
        with pytest.raises(ConfigError, match="network"):
            network.set(values)
    assert network.run([1.0, 1.0]).tolist() == [6.0]
    with pytest.raises(ConfigError, match="inputs must have shape"):
        network.run([1.0, 2.0, 3.0])
    for arguments in (((3,),), ((3, 0),), ((3, 1), "sine"), ((2, -1),)):
        with pytest.raises(ConfigError, match="network of sizes"):
            Network(*arguments)
