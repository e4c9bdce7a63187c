"""Converts raw observations to float tensors: one-hot for discrete, 0..1 for images, normalization for boxes."""

import math
from collections.abc import Collection
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from surefoot.data.moments import ObsMoments
from surefoot.data.records import Obs
from surefoot.data.specs import ArraySpec, ObsSpec
from surefoot.data.tree import tree_items, tree_map, without
from surefoot.policies.native_parts import Plain, PlanBuilder, UnknownToCoreError
from surefoot.policies.normalizer import RunningNormalizer
from surefoot.settings.config import NormalizeConfig


def prepared_spec(spec: ArraySpec) -> ArraySpec:
    """The spec of an observation after `Preprocess`: always float32."""
    if spec.kind in ("discrete", "multi_discrete"):
        return ArraySpec("box", (sum(spec.sizes),), "float32")
    return replace(spec, dtype="float32", kind="image" if spec.kind == "image" else "box")


class Preprocess(nn.Module):
    """Converts env observations to network inputs; `unread` keys of a Dict observation are dropped."""

    def __init__(self, spec: ObsSpec, config: NormalizeConfig, unread: Collection[str] = ()) -> None:
        super().__init__()
        self._env_spec, spec = spec, without(spec, unread)
        self._raw_spec = spec
        self.spec: ObsSpec = tree_map(prepared_spec, spec)
        self.normalizers = nn.ModuleDict(
            {
                _module_name(key): RunningNormalizer(leaf.shape, config.obs_clip)
                for key, leaf in tree_items(spec)
                if config.obs and leaf.kind == "box"
            }
        )

    def forward(self, obs: Obs) -> Obs:
        if isinstance(self._raw_spec, ArraySpec):
            assert isinstance(obs, Tensor)
            return self._prepare("", self._raw_spec, obs)
        assert isinstance(obs, dict)
        return {key: self._prepare(key, leaf, obs[key]) for key, leaf in self._raw_spec.items()}

    @torch.no_grad()
    def absorb(self, obs: Obs) -> None:
        """Merge valid observations `[B, ...]` into the running statistics."""
        for key, leaf in tree_items(obs):
            normalizer = self.normalizer_of(key)
            if normalizer is not None:
                normalizer.absorb(leaf)

    def merge(self, moments: ObsMoments) -> None:
        """Merge moments by key into the running statistics."""
        for key, found in moments.items():
            normalizer = self.normalizer_of(key)
            assert normalizer is not None
            normalizer.merge(found)

    def normalizer_of(self, key: str) -> RunningNormalizer | None:
        """The running statistics of an observation, if it has any."""
        name = _module_name(key)
        if name not in self.normalizers:
            return None
        normalizer = self.normalizers[name]
        assert isinstance(normalizer, RunningNormalizer)
        return normalizer

    def is_box(self, key: str) -> bool:
        """Whether an observation is a vector or array of real numbers, not an image, a choice or bits."""
        spec: ArraySpec | None = dict(tree_items(self._raw_spec)).get(key)
        return spec is not None and spec.kind == "box"

    def native(self, plan: PlanBuilder) -> list[Plain]:
        """One description per observation; only rollouts have those that no network reads."""
        spec = self._raw_spec if plan.learns else self._env_spec
        return [self._native_leaf(plan, key, leaf) for key, leaf in tree_items(spec)]

    def _native_leaf(self, plan: PlanBuilder, key: str, spec: ArraySpec) -> Plain:
        if not plan.learns and (spec.kind != "box" or spec.dtype != "float32"):
            name = f"the observation '{key}'" if key else "the observation"
            raise UnknownToCoreError(
                f"the native core supports only float32 boxes; {name} is {spec.kind} of {spec.dtype}"
            )
        described: Plain = {"key": key, "size": prepared_spec(spec).size, "normalizer": "", "clip": math.inf}
        name = _module_name(key)
        return described | (plan.part("normalizer", self.normalizers[name]) if name in self.normalizers else {})

    @torch.no_grad()
    def for_core(self, obs: Obs) -> list[Tensor]:
        """Observations `[B, size]` that the core learns from; it normalizes boxes and scales images itself."""
        leaves = [(key, spec, obs[key] if isinstance(obs, dict) else obs) for key, spec in tree_items(self._raw_spec)]
        return [self._for_core(*leaf).reshape(len(leaf[-1]), -1) for leaf in leaves]

    def _for_core(self, key: str, spec: ArraySpec, leaf: Tensor) -> Tensor:
        if spec.kind == "image":
            return leaf
        return leaf.float() if spec.kind == "box" else self._prepare(key, spec, leaf)

    def _prepare(self, key: str, spec: ArraySpec, leaf: Tensor) -> Tensor:
        if spec.kind == "discrete":
            return functional.one_hot(leaf, spec.sizes[0]).float()
        if spec.kind == "multi_discrete":
            columns = leaf.flatten(1).unbind(1)
            hot = [functional.one_hot(column, n) for column, n in zip(columns, spec.sizes, strict=True)]
            return torch.cat(hot, dim=1).float()
        if spec.kind == "image":
            return leaf.float() / 255
        name = _module_name(key)
        normalized: Tensor = self.normalizers[name](leaf) if name in self.normalizers else leaf.float()
        return normalized


def _module_name(key: str) -> str:
    # The prefix avoids clashes of keys such as "type" and "values" with attributes of modules.
    return f"obs/{key.replace('.', '/')}" if key else "obs"
