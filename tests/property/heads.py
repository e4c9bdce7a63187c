"""An action space for every registered distribution; a new one needs a line here to be tested by the laws."""

import functools

import numpy as np
import torch

from surefoot.data.specs import ArraySpec
from surefoot.philox import Stream, uniforms
from surefoot.policies.distributions import DistributionHead, build_head
from surefoot.settings.config import PolicyConfig

BOUNDED = ArraySpec("box", (3,), "float32", (-1.0, -2.0, 0.0), (1.0, 2.0, 5.0))
ACTION_SPECS = {
    "gaussian": BOUNDED,
    "tanh_gaussian": BOUNDED,
    "beta": BOUNDED,
    "categorical": ArraySpec("discrete", (), "int64", sizes=(4,), start=(2,)),
    "multi_discrete": ArraySpec("multi_discrete", (3,), "int64", sizes=(2, 4, 3), start=(0, 1, -1)),
    "bernoulli": ArraySpec("multi_binary", (3,), "float32", 0.0, 1.0),
}
DISCRETE = ("categorical", "multi_discrete", "bernoulli")
LATENT = 4


def lively_head(name: str, seed: int = 0, scale: float = 1.0, **config) -> DistributionHead:
    """A head whose distributions differ from element to element and from feature to feature."""
    generator = torch.Generator().manual_seed(seed)
    head = build_head(LATENT, ACTION_SPECS[name], PolicyConfig(distribution=name, **config))
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.copy_(scale * torch.randn(parameter.shape, generator=generator))
    return head


def latents(count: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(count, LATENT, generator=torch.Generator().manual_seed(seed))


def drawn_noise(head: DistributionHead, count: int, seed: int = 0) -> torch.Tensor:
    """The noise of `count` steps of one row, from the counters a rollout uses."""
    return head.noise(_uniforms(seed, count, head.noise_size))[:, 0]


@functools.lru_cache(maxsize=8)
def _uniforms(seed: int, count: int, size: int) -> torch.Tensor:
    return torch.from_numpy(uniforms(seed, np.arange(count), [0], size, Stream.ACTION))


def choices_of(name: str) -> torch.Tensor:
    """Every raw action of a discrete kind, `[number of actions, ...]`."""
    spec = ACTION_SPECS[name]
    if name == "categorical":
        return torch.arange(spec.sizes[0])
    sizes = spec.sizes or (2,) * spec.size
    return torch.cartesian_prod(*(torch.arange(n) for n in sizes))
