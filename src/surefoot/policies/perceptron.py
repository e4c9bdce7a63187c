"""Multilayer perceptrons during learning: the core's passes are faster than PyTorch's."""

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

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
LARGE_WORK = 10_000_000
"""Samples times weights for which several threads pay off. Only the core uses several, because PyTorch's results
depend on how many there are."""
LARGE_WEIGHTS_A_SAMPLE = 16_384
"""Maximum number of weights per sample of large passes, for which threads make up for packing."""


def learns_in_core(parameters: Sequence[Tensor], activation: Activation) -> bool:
    """Whether the core has the gradients of these layers."""
    return activation in LEARNED and kernels() is not None and all(map(is_plain, parameters))


def suits_the_core(samples: int, parameters: Sequence[Tensor], activation: Activation) -> bool:
    """Whether the core supports this pass and would be faster."""
    if not parameters or not learns_in_core(parameters, activation):
        return False
    sizes = [part.numel() for part in parameters]
    work, most = samples * sum(sizes), max(sizes)
    is_faster = work >= LEAST_WORK and most <= WEIGHTS_A_SAMPLE * samples
    return is_faster or (work >= LARGE_WORK and most <= LARGE_WEIGHTS_A_SAMPLE * samples)


def learns(features: Tensor, parameters: Sequence[Tensor]) -> bool:
    """PyTorch computes passes without a gradient, the reference for native rollouts, and other precisions."""
    if not torch.is_grad_enabled() or torch.is_autocast_enabled("cpu"):
        return False
    return (
        features.dim() == 2 and is_plain(features) and any(tensor.requires_grad for tensor in (features, *parameters))
    )


def perceptron(features: Tensor, parameters: Sequence[Tensor], activation: Activation | Literal["identity"]) -> Tensor:
    """Layers `weight, bias, weight, bias, ...`, each followed by the nonlinearity."""
    result: Tensor = _CorePerceptron.apply(activation, features, *parameters)
    return result


def linear(features: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """A layer without a nonlinearity; in the core if it is large."""
    parameters = (weight, bias)
    is_large = _is_large(len(features), weight) and learns_in_core(parameters, "tanh")
    if is_large and learns(features, parameters):
        return perceptron(features, parameters, "identity")
    return functional.linear(features, weight, bias)


def weight_gradients(features: Tensor, grad_outputs: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of the weight and bias of a linear layer; from the core if it is large."""
    if not _is_large(len(features), weight):
        return grad_outputs.T @ features, grad_outputs.sum(0)
    grad_weight, grad_bias = torch.empty_like(weight), weight.new_empty(len(weight))
    given, grads = arrays([features, weight, grad_outputs]), arrays([grad_weight, grad_bias])
    core().perceptron_backward(
        "identity", given[0], given[1:2], given[2:], given[2], grads[:1], grads[1:], None, kernel_threads()
    )
    return grad_weight, grad_bias


def _is_large(samples: int, weight: Tensor) -> bool:
    return samples * weight.numel() >= LARGE_WORK and weight.numel() <= LARGE_WEIGHTS_A_SAMPLE * samples


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
