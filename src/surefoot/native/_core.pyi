"""Surefoot's C++ core: environments, policies and whole rollouts."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy
from numpy.typing import NDArray

def env_ids() -> list[str]:
    """Ids of all native environments, sorted."""

def library_envs(library: str) -> list[tuple[str, int]]:
    """Ids and time limits of the environments in a library."""

def footprint(
    env_id: str, options: Mapping[str, bool | float | str | Sequence[float]], library: str = ""
) -> tuple[int, int]:
    """Memory of each environment: bytes in use, and bytes of reserved address space."""

def mujoco_versions() -> tuple[int, int]:
    """The MuJoCo version the core was built with, and the one that is loaded."""

def have_values(dicts: list, values: list) -> bool:
    """Whether the dicts have exactly these objects as values, in order."""

class Policy:
    """A policy that the core runs."""

    def __init__(self, plan: dict, instructions: str = "") -> None:
        """Build from a plan; `instructions` selects an instruction set instead of the best one."""

    def sync(self, tensors: dict) -> None:
        """Load new weights by name; if some do not fit, the error lists them and nothing changes."""

    def act(
        self,
        obs: Sequence[object],
        mask: object | None = None,
        *,
        state: Sequence[object] = (),
        episode_start: object | None = None,
        seed: int,
        step: int,
        first_row: int = 0,
        stream: int = 0,
    ) -> tuple:
        """
        Raw actions, log-probs and values of rows; `state` is the recurrent state, one array per tensor, updated in place.
        """

    def value(
        self, obs: Sequence[object], *, state: Sequence[object] = (), episode_start: object | None = None
    ) -> NDArray[numpy.float32]:
        """Values of rows in raw units; `state` is unchanged."""

    def to_env(
        self,
        action: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    ) -> NDArray[numpy.float32]:
        """Convert raw Box actions to env actions."""

    def noise(self, rows: int, *, seed: int, step: int, first_row: int = 0, stream: int = 0) -> NDArray[numpy.float32]:
        """The uniforms from which `act` samples these rows."""

    @property
    def is_discrete(self) -> bool: ...
    @property
    def is_synced(self) -> bool: ...
    @property
    def action_size(self) -> int: ...
    @property
    def noise_size(self) -> int: ...
    @property
    def mask_size(self) -> int: ...
    @property
    def state_sizes(self) -> list[int]:
        """Numbers per row of each tensor of the recurrent state; empty without memory."""

    @property
    def instructions(self) -> str: ...

def part_kinds() -> dict:
    """
    The kinds of encoders, distributions, memories, critics, terms and gradient transforms that the core supports.
    """

def instructions() -> str:
    """The instruction set of this process: SUREFOOT_INSTRUCTIONS, or the best that this machine supports."""

def instruction_sets() -> list:
    """Instruction sets that this machine supports, the best last."""

def uniforms(seed: int, step: int, first_row: int, rows: int, count: int, stream: int = 0) -> NDArray[numpy.float32]:
    """Uniforms [rows, count], equal to those of surefoot.philox."""

class Network:
    """A stack of linear layers on the kernels."""

    def __init__(self, sizes: Sequence[int], hidden: str, output: str) -> None: ...
    @property
    def num_values(self) -> int: ...
    def set(self, values: object) -> None: ...
    def run(self, rows: int, inputs: object, outputs: object) -> None: ...

class Threads:
    """A thread pool for learning; its threads sleep shortly after the last pass."""

    def __init__(self, count: int) -> None:
        """Total number of threads, including the calling one."""

    @property
    def count(self) -> int: ...

def lstm_forward(arrays: dict, threads: Threads) -> None:
    """States of an LSTM layer over packed sequences, and the intermediate results for backward."""

def lstm_backward(arrays: dict, threads: Threads) -> None:
    """Gradients of `lstm_forward`'s gates and initial states, from which the weights' gradients follow."""

def gru_forward(arrays: dict, threads: Threads) -> None:
    """States of a GRU layer over packed sequences, and the intermediate results for backward."""

def gru_backward(arrays: dict, threads: Threads) -> None:
    """Gradients of `gru_forward`'s gates and initial states, from which the weights' gradients follow."""

def standardize(
    numbers: Annotated[NDArray[numpy.float32], dict(order="C", device="cpu", writable=False)],
    valid: object,
    standardized: object,
) -> None:
    """Write the numbers with zero mean and unit standard deviation over those that are valid."""

def fit(
    values: Annotated[NDArray[numpy.float32], dict(order="C", device="cpu", writable=False)], returns: object
) -> tuple[float, float]:
    """Explained variance of values, and their error relative to the root mean square of the returns."""

def crc32c(bytes: bytes) -> int:
    """The CRC-32C checksum."""

class NonFinite:
    """The first place with NaN or infinity, or with a mask that forbids every choice."""

    @property
    def step(self) -> int: ...
    @property
    def row(self) -> int: ...
    @property
    def where(self) -> str: ...
    @property
    def leaf(self) -> int: ...
    @property
    def index(self) -> int: ...
    @property
    def value(self) -> float: ...

class RolloutResult:
    """Statistics and errors of a rollout."""

    @property
    def num_steps(self) -> int: ...
    @property
    def out_of_bounds(self) -> int: ...
    @property
    def problem(self) -> NonFinite | None: ...
    @property
    def total_rewards(self) -> NDArray[numpy.float64]: ...
    @property
    def lengths(self) -> NDArray[numpy.int64]: ...
    def moments(self, leaf: int) -> tuple[float, NDArray[numpy.float64], NDArray[numpy.float64]]:
        """Count, mean and population variance of a leaf of the observation."""

    def row_moments(self, leaf: int) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64]]:
        """Count, mean and population variance of a leaf of the observation in each row."""

def merged_moments(
    counts: object, means: object, variances: object, num_rows: int, size: int
) -> tuple[float, NDArray[numpy.float64], NDArray[numpy.float64]]:
    """The moments of all rows together, merged in the order of rows, as in a rollout."""

class Engine:
    """Steps environments on all cores."""

    def __init__(
        self,
        env_id: str,
        options: Mapping[str, bool | float | str | Sequence[float]],
        num_envs: int,
        threads: int,
        max_episode_steps: int,
        truncation_as_termination: bool = False,
        library: str = "",
    ) -> None: ...
    @property
    def num_rows(self) -> int: ...
    @property
    def threads(self) -> int: ...
    @property
    def num_envs(self) -> int: ...
    @property
    def num_agents(self) -> int: ...
    @property
    def obs_parts(self) -> list[tuple[str, list[int], list[float], list[float]]]: ...
    @property
    def obs_sizes(self) -> list[int]: ...
    @property
    def action_space(self) -> dict: ...
    @property
    def metrics(self) -> list[tuple[str, str]]: ...
    @property
    def parameters(self) -> list[tuple[str, list[int], list[float], bool]]: ...
    def set_parameter(self, index: int, values: object) -> None: ...
    def parameter(self, index: int) -> NDArray[numpy.float64]: ...
    @property
    def mask_size(self) -> int: ...
    def reset(
        self, seeds: object | None, obs: Sequence[object], action_mask: object | None, resting: object | None = None
    ) -> None: ...
    def step(
        self,
        actions: object,
        obs: Sequence[object],
        final_obs: Sequence[object],
        outcome: dict,
        action_mask: object | None,
    ) -> None: ...
    def collect(
        self,
        policy: Policy,
        fields: dict,
        seed: int,
        first_step: int,
        first_row: int,
        stream: int,
        others: Sequence[tuple[int, Policy, Sequence[object], bool]] = (),
    ) -> RolloutResult:
        """
        A rollout into the arrays of `fields`, one list of leaves per name. `others` are policies that act in the rows with their numbers in the fields `acting` and, from their next episode on, `wanted`.
        """

    def replay(self, actions: object, ended: object) -> None: ...
    def scene(self, env: int) -> tuple[bytes, float, NDArray[numpy.float64]]:
        """For rendering: MuJoCo's model as a file, the seconds per step, and the pose; empty for other envs."""

    def save(self) -> NDArray[numpy.float64]: ...
    def load(self, state: object) -> None:
        """Continue from saved states; if one of them is rejected, nothing changes."""

    def check(self, state: object) -> None:
        """Raise what `load` would raise."""

class Learner:
    """The update of a policy that the core learns."""

    def __init__(self, plan: dict, terms: Sequence[dict], tensors: dict, instructions: str = "") -> None:
        """
        Build from the plans of a policy and its terms; `instructions` selects an instruction set instead of the best.
        """

    @property
    def measures(self) -> list[str]:
        """Names of the columns of the measures of `learn`."""

    def learn(
        self,
        samples: dict,
        settings: dict,
        tensors: dict,
        memory: dict,
        threads: Threads,
        on_gradient: object | None = None,
    ) -> dict:
        """
        Run all epochs of an update; weights, gradient, moments and what transforms remember change in place. `on_gradient` is called with the sums of the measures before every step.
        """

def orthonormalize(
    vectors: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
) -> None:
    """Make the rows orthonormal, in place."""

def gae(arrays: dict, gamma: float, gae_lambda: float) -> None:
    """Generalized advantage estimation; writes `advantage` and `returns`."""

def discounted_sums(arrays: dict, gamma: float) -> None:
    """Discounted sums of past rewards; writes `sums`."""
