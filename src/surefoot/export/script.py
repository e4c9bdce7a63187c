"""A short script that runs an exported policy with only numpy and onnxruntime."""

import json
from collections.abc import Sequence

from surefoot.data.specs import ArraySpec, HybridSpec, ObsSpec
from surefoot.data.tree import tree_items
from surefoot.export.deployed import ACTION, ACTION_MASK, EPISODE_START, NEXT_STATE, STATE, obs_name

MARK = "Written by surefoot export"
"""In the first line of a script, which may then be overwritten."""


def run_script(model_name: str, env_id: str, inputs: Sequence[str], obs_spec: ObsSpec, action: ArraySpec) -> str:
    """The script for a graph with these inputs; state and shapes are read from the graph itself."""
    specs = {key: spec for key, spec in tree_items(obs_spec) if obs_name(key) in inputs}
    flags = [name for name in (EPISODE_START, ACTION_MASK) if name in inputs]
    state = [name for name in inputs if name.startswith(STATE)]
    results = ", ".join(["action", *(f'feed["{name}"]' for name in state)])
    wanted = json.dumps([ACTION, *(name.replace(STATE, NEXT_STATE) for name in state)])
    lines = [
        f'"""{MARK}: runs the policy {model_name} for {env_id} with only numpy and onnxruntime."""',
        "",
        "from pathlib import Path",
        "",
        "import numpy as np",
        "import onnxruntime",
        "",
        'dtypes = {"tensor(float)": "f4", "tensor(int64)": "i8", "tensor(uint8)": "u1", "tensor(bool)": "?"}',
        f"session = onnxruntime.InferenceSession(Path(__file__).with_name({json.dumps(model_name)}))",
        "feed = {part.name: np.zeros([1, *part.shape[1:]], dtypes[part.type]) for part in session.get_inputs()}",
        "",
        "",
        f"def act({', '.join(['obs', *flags])}):",
        *(f"    feed[{json.dumps(obs_name(key))}][0] = obs{f'[{json.dumps(key)}]' if key else ''}" for key in specs),
        *(f'    feed["{name}"][0] = {name}' for name in flags),
        f"    {results} = session.run({wanted}, feed){'' if state else '[0]'}",
        f"    return {_returned(action)}",
        "",
        "",
        'if __name__ == "__main__":',
        f"    obs = {_example(specs)}  # an observation of the env",
        "    for step in range(5):",
        f"        print(act({', '.join(['obs', *(_FLAGS[name] for name in flags)])}))",
    ]
    return "\n".join([*lines, ""])


_FLAGS = {EPISODE_START: "step == 0", ACTION_MASK: "True"}


def _example(specs: dict[str, ArraySpec]) -> str:
    if "" in specs:
        return _array(specs[""])
    return "{" + ", ".join(f"{json.dumps(key)}: {_array(spec)}" for key, spec in specs.items()) + "}"


def _returned(action: ArraySpec) -> str:
    """The action of the env, whose parts are side by side in the graph's output if it is hybrid."""
    if not isinstance(action, HybridSpec):
        return "action[0]"
    pieces, first = [], 0
    for key, part in action.parts:
        piece = f'action[0, {first}:{first + part.size}].reshape({part.shape}).astype("{part.env_dtype}")'
        pieces.append(f"{json.dumps(key)}: {piece}" if action.kind == "dict" else f"{piece},")
        first += part.size
    return f"{{{', '.join(pieces)}}}" if action.kind == "dict" else f"({' '.join(pieces)})"


def _array(spec: ArraySpec) -> str:
    if spec.start:
        first = spec.start[0] if not spec.shape else list(spec.start)
        return f"np.reshape({first}, {spec.shape})" if len(spec.shape) > 1 else str(first)
    return f'np.zeros({spec.shape}, "{spec.dtype}")'
