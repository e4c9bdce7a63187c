"""Who learns on how many threads: torch's and those of the core's kernels would wait for each other's cores."""

import torch
from torch import nn

from surefoot.core.config import Config, PPOConfig
from surefoot.core.cores import available_cores
from surefoot.native.kernels import set_kernel_threads
from surefoot.policies.networks import MLP
from surefoot.policies.policy import Policy

SMALL_WORK = 10_000_000
"""Torch's parameters times samples of a minibatch below which one thread of it is the fastest."""


def set_learning_threads(policy: Policy, config: Config) -> None:
    """As many as the config says, or one a core, as far as there is work for them."""
    most = config.train.threads or available_cores()
    torch.set_num_threads(torch_threads(policy, config.ppo, most))
    set_kernel_threads(most)


def torch_threads(policy: Policy, ppo: PPOConfig, most: int) -> int:
    """One where the core does the work or little is to do: handing it out would cost more than doing it."""
    samples = min(ppo.batch_size, ppo.micro_batch_size or ppo.batch_size)
    in_core = [part for part in policy.modules() if isinstance(part, MLP) and part.learns_in_core(samples)]
    num_parameters = _size(policy) - sum(map(_size, in_core))
    return 1 if num_parameters * samples < SMALL_WORK else most


def _size(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
