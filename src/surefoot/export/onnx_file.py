"""Exports a policy to an ONNX file that is checked against the policy, with a script that runs it."""

import json
from dataclasses import dataclass
from pathlib import Path

from surefoot.data.specs import spec_to_json
from surefoot.envs.protocol import VecEnv
from surefoot.envs.protocol.parameters import agent_values
from surefoot.errors import ExportError
from surefoot.export.deployed import Deployed, acting_copy
from surefoot.export.graph import build_graph, require_packages
from surefoot.export.parity import TOLERANCE, Parity, check_parity
from surefoot.export.script import MARK, run_script
from surefoot.machine.torch_threads import torch_threads
from surefoot.policies.policy import Policy
from surefoot.settings.config import Config
from surefoot.storage.files import beginning
from surefoot.training.checkpoint import write_atomically
from surefoot.version import VERSION

SUFFIX = ".onnx"


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
    inputs = [part.name for part in session.get_inputs()]
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
