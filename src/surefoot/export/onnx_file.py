"""Exports a policy to an ONNX file that is checked against the policy, with a script that runs it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from surefoot.data.specs import ArraySpec, HybridSpec, ObsSpec, spec_to_json
from surefoot.data.tree import tree_items
from surefoot.envs.protocol import VecEnv
from surefoot.envs.protocol.agent_parameters import agent_values
from surefoot.errors import ExportError
from surefoot.export.deployed import (
    ACTION,
    ACTION_MASK,
    EPISODE_START,
    NEXT_STATE,
    STATE,
    Deployed,
    acting_copy,
    obs_name,
)
from surefoot.export.graph import build_graph, require_packages
from surefoot.export.parity import TOLERANCE, Parity, check_parity
from surefoot.machine.torch_defaults import torch_threads
from surefoot.policies.policy import Policy
from surefoot.settings.config import Config
from surefoot.storage.files import beginning
from surefoot.training.checkpoint import write_atomically
from surefoot.version import VERSION

SUFFIX = ".onnx"
MARK = "Written by surefoot export"
"""In the first line of a script, which may then be overwritten."""
_FLAGS = {EPISODE_START: "step == 0", ACTION_MASK: "True"}


@dataclass(frozen=True)
class Exported:
    """The written files and the result of the check."""

    model: Path
    script: Path
    parity: Parity
    left_out: tuple[str, ...] = ()
    """Parameters of the envs that belong to the agent: the file has the policy alone."""


def export_onnx(policy: Policy, env: VecEnv, config: Config, path: Path, tolerance: float = TOLERANCE) -> Exported:
    """Write the policy and a script that runs it, after checking that they match over an episode of `env`."""
    require_packages()
    from onnxruntime import InferenceSession, SessionOptions

    script = path.with_name(f"{path.stem}_run.py")
    _check_targets(path, script)
    reference = acting_copy(policy)
    deployed = Deployed(reference, env.obs_spec, env.mask_size)
    data = build_graph(deployed, describe(config, env)).SerializeToString()
    options = SessionOptions()
    options.intra_op_num_threads = 1  # two rows are too little work for more threads
    session = InferenceSession(data, options)
    with torch_threads(1):
        parity = check_parity(reference, session, env, tolerance)
    inputs = [one.name for one in session.get_inputs()]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        text = run_script(path.name, config.env.id, inputs, env.obs_spec, env.action_spec)
        write_atomically(script, text.encode())
        write_atomically(path, data)
    except OSError as error:
        raise ExportError(f"cannot write {path}: {error.strerror}; choose another file") from error
    return Exported(path, script, parity, tuple(agent_values(env)))


def describe(config: Config, env: VecEnv) -> dict[str, str]:
    """The metadata of the file."""
    return {
        "surefoot_version": VERSION,
        "env_id": config.env.id,
        "config": json.dumps(config.model_dump(mode="json")),
        "obs_spec": json.dumps(spec_to_json(env.obs_spec)),
        "action_spec": json.dumps(spec_to_json(env.action_spec)),
    }


def _check_targets(path: Path, script: Path) -> None:
    """Check the paths first: never overwrite other files."""
    if path.suffix != SUFFIX or path.is_dir():
        raise ExportError(f"{path} is not a valid path for a model; use a file name that ends with {SUFFIX}")
    if script.exists() and MARK.encode() not in beginning(script, 200):
        raise ExportError(f"{script} exists and was not written by an export; move it, or choose another model name")


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
        "feed = {node.name: np.zeros([1, *node.shape[1:]], dtypes[node.type]) for node in session.get_inputs()}",
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


def _example(specs: dict[str, ArraySpec]) -> str:
    if "" in specs:
        return _array(specs[""])
    return "{" + ", ".join(f"{json.dumps(key)}: {_array(spec)}" for key, spec in specs.items()) + "}"


def _returned(action: ArraySpec) -> str:
    """The action of the env, whose components are side by side in the graph's output if it is hybrid."""
    if not isinstance(action, HybridSpec):
        return "action[0]"
    pieces, first = [], 0
    for key, leaf in action.components:
        piece = f'action[0, {first}:{first + leaf.size}].reshape({leaf.shape}).astype("{leaf.env_dtype}")'
        pieces.append(f"{json.dumps(key)}: {piece}" if action.kind == "dict" else f"{piece},")
        first += leaf.size
    return f"{{{', '.join(pieces)}}}" if action.kind == "dict" else f"({' '.join(pieces)})"


def _array(spec: ArraySpec) -> str:
    if spec.start:
        first = spec.start[0] if not spec.shape else list(spec.start)
        return f"np.reshape({first}, {spec.shape})" if len(spec.shape) > 1 else str(first)
    return f'np.zeros({spec.shape}, "{spec.dtype}")'
