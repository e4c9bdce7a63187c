"""Multilayer perceptrons during learning: the core's passes are faster than PyTorch's."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from surefoot.core.config import Activation
from surefoot.native import core
from surefoot.native.kernels import kernel_threads, kernels
from surefoot.policies.core_tensors import arrays, is_plain

LEARNED: tuple[Activation, ...] = ("tanh", "relu", "elu", "leaky_relu")
"""The activations for which the core has gradients."""
LEAST_WORK = 500_000
"""Minimum of samples times weights: below it, the call overhead exceeds the gain."""
WEIGHTS_A_SAMPLE = 512
"""Maximum number of weights per sample: the core packs the weights in every pass, which must pay off."""


def suits_the_core(samples: int, parameters: Sequence[Tensor], activation: Activation) -> bool:
    """Whether the core supports this pass and would be faster."""
    if not parameters or activation not in LEARNED or kernels() is None:
        return False
    sizes = [part.numel() for part in parameters]
    is_faster = samples * sum(sizes) >= LEAST_WORK and max(sizes) <= WEIGHTS_A_SAMPLE * samples
    return is_faster and all(map(is_plain, parameters))


def learns(features: Tensor, parameters: Sequence[Tensor]) -> bool:
    """PyTorch computes passes without a gradient, the reference for native rollouts, and other precisions."""
    if not torch.is_grad_enabled() or torch.is_autocast_enabled("cpu"):
        return False
    return (
        features.dim() == 2 and is_plain(features) and any(tensor.requires_grad for tensor in (features, *parameters))
    )


def perceptron(features: Tensor, parameters: Sequence[Tensor], activation: Activation) -> Tensor:
    """Layers `weight, bias, weight, bias, ...`, each followed by the nonlinearity."""
    result: Tensor = _CorePerceptron.apply(activation, features, *parameters)
    return result


class _CorePerceptron(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, activation: Activation, features: Tensor, *parameters: Tensor) -> Tensor:
        weights, biases = parameters[::2], parameters[1::2]
        outputs = [features.new_empty(len(features), len(weight)) for weight in weights]
        core().perceptron_forward(
            activation,
            features.detach().numpy(),
            arrays(weights),
            arrays(biases),
            arrays(outputs),
            kernel_threads(),
        )
        context.activation = activation
        context.save_for_backward(features, *weights, *outputs)
        return outputs[-1]

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        features, *kept = context.saved_tensors
        weights, outputs = kept[: len(kept) // 2], kept[len(kept) // 2 :]
        grad_features = torch.empty_like(features) if context.needs_input_grad[1] else None
        grad_weights = [torch.empty_like(weight) for weight in weights]
        grad_biases = [weight.new_empty(len(weight)) for weight in weights]
        core().perceptron_backward(
            context.activation,
            features.detach().numpy(),
            arrays(weights),
            arrays(outputs),
            grad_output.contiguous().numpy(),
            arrays(grad_weights),
            arrays(grad_biases),
            None if grad_features is None else grad_features.numpy(),
            kernel_threads(),
        )
        pairs = zip(grad_weights, grad_biases, strict=True)
        return None, grad_features, *(gradient for pair in pairs for gradient in pair)
