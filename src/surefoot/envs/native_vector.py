"""Gymnasium's vector interface to native environments, for any other library."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from surefoot.data.specs import ArraySpec
from surefoot.envs.adapters.gymnasium_factory import GymnasiumFactory
from surefoot.envs.adapters.pettingzoo_factory import pettingzoo_factory
from surefoot.envs.library import LibraryFactory, is_library, library_factory
from surefoot.envs.native_specs import core_action_spec, core_declared, core_obs_spec, set_in_core
from surefoot.envs.native_task import NO_LIMIT, PETTINGZOO, native_task, open_engine, seed_words
from surefoot.envs.protocol.agent_parameters import Values
from surefoot.envs.protocol.parameters import Parametrized
from surefoot.errors import NativeError
from surefoot.output.quoted import quoted
from surefoot.settings.config import EnvConfig

if TYPE_CHECKING:
    from surefoot.native import Engine


RESET_MASK = "reset_mask"
"""Gymnasium's option of a reset that marks the envs to reset; the others keep their episodes."""


class NativeVectorEnv(Parametrized, VectorEnv[Any, Any, Any]):
    """Envs of the core in each of Gymnasium's autoreset modes; `set_parameters` sets numbers in them by name.

    The core resets an env in the step in which it ends. SAME_STEP shows that, and the last observation of an episode as
    `infos["final_obs"]`. In the other modes an env that ended shows its last observation, and rests: until the next
    step (NEXT_STEP), or until it is reset (DISABLED).

    Of envs with several agents, every agent is an entry, by env and then by agent: `num_envs` is the number of all
    agents. `infos["valid"]` says which of them took part in the step. An env is reset when all of its agents have
    ended. Seeds are still one per env.
    """

    def __init__(
        self,
        env_id: str,
        num_envs: int,
        threads: int,
        kwargs: Mapping[str, Any],
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
    ) -> None:
        limit = kwargs.get("max_episode_steps")
        _require("num_envs", num_envs, 1)
        _require("threads", threads, 0)
        if limit not in (None, NO_LIMIT):
            _require("max_episode_steps", limit, 1)
        arguments = {name: value for name, value in kwargs.items() if name != "max_episode_steps"}
        factory = _factory(env_id, arguments, limit)
        engine = open_engine(native_task(factory), num_envs, threads)
        self._engine: Engine | None = engine
        self._mode, self.num_agents = _mode(autoreset_mode), engine.num_agents
        if self.num_agents > 1 and self._mode is not AutoresetMode.SAME_STEP:
            raise NativeError(f"'{env_id}' has several agents, whose envs support only AutoresetMode.SAME_STEP")
        self._num_games, num_envs = num_envs, num_envs * self.num_agents
        self.num_envs = self.num_rows = num_envs
        self._declare_parameters(core_declared(engine).parameters, self.num_agents)
        self._read_spaces(factory, engine)
        self.metadata = {**self.metadata, "autoreset_mode": self._mode}
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._keys = [leaf[0] for leaf in engine.obs_parts]
        self._obs, self._final_obs = ([np.zeros((num_envs, size)) for size in engine.obs_sizes] for _ in range(2))
        mask_size = engine.mask_size
        self._mask = np.ones((num_envs, mask_size), dtype=bool) if mask_size else None
        self._resting, self._valid = np.zeros(num_envs, dtype=bool), np.ones(num_envs, dtype=bool)
        self._is_seeded = False

    def _read_spaces(self, factory: Callable[[], Any], engine: "Engine") -> None:
        """As the Gymnasium env says, which knows in what precision it observes; else as the core does."""
        if self.num_agents > 1 or (isinstance(factory, LibraryFactory) and not factory.has_twin):
            self.single_observation_space, self.single_action_space = core_spaces(engine)
            return
        one = factory()
        self.spec, self.metadata = one.spec, one.metadata
        self.single_observation_space, self.single_action_space = one.observation_space, one.action_space
        one.close()

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Start all envs, or those that the option `reset_mask` marks.

        Env i is seeded with `seed + i` or `seed[i]`, or continues with its own generator.
        """
        chosen = self._chosen(options)
        words = None
        if seed is not None or not self._is_seeded:
            words = np.array([seed_words(one) for one in self._seeds(seed)], dtype=np.uint64)
            self._is_seeded = True
        # The core has reset those that rest already; another reset would draw from their generators again.
        kept = ~chosen if words is not None else ~chosen | self._resting
        self._open().reset(words, self._obs, self._mask, kept)
        self._resting &= ~chosen
        self._valid |= chosen
        return self._shown(), self._info(None if chosen.all() else chosen)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step all envs, except those that rest."""
        if not self._is_seeded:
            raise NativeError("reset the envs before the first step")
        if self._mode is AutoresetMode.DISABLED and self._resting.any():
            raise NativeError(
                f"env {int(self._resting.argmax())} has ended; reset it before the next step:"
                f" reset(options={{'{RESET_MASK}': terminated | truncated}})"
            )
        reward = np.zeros(self.num_envs)
        terminated, truncated = np.zeros((2, self.num_envs), dtype=bool)
        outcome = {"reward": reward, "terminated": terminated, "truncated": truncated, "resting": self._resting}
        outcome["valid"] = self._valid
        chosen = self._actions(actions)
        try:
            self._open().step(chosen, self._obs, self._final_obs, outcome, self._mask)
        except ValueError as error:
            raise NativeError(f"actions must be in {self.action_space}: {error}") from error
        ended = terminated | truncated
        if self._mode is not AutoresetMode.SAME_STEP:
            self._resting = ended
            return self._shown(), reward, terminated, truncated, self._info(~ended)
        info = self._info()
        if ended.any():
            info |= {"final_obs": self._observation(self._final_obs), "_final_obs": ended}
        return self._shown(), reward, terminated, truncated, info

    def save_state(self) -> NDArray[np.float64]:
        """All that is needed to continue from here bit for bit, `[num_envs, numbers]`."""
        state = self._open().save()
        if self._mode is AutoresetMode.SAME_STEP:
            return state
        return np.concatenate([state, *(array.reshape(self.num_envs, -1) for array in self._beside_the_core())], axis=1)

    def load_state(self, state: NDArray[np.float64]) -> None:
        """Continue from a saved state; if these envs cannot have saved it, nothing changes."""
        if not isinstance(state, np.ndarray) or state.dtype != np.float64:
            raise NativeError(f"the state must be the float64 array that save_state returned, not {_brief(state)}")
        of_core, others = (state, []) if self._mode is AutoresetMode.SAME_STEP else self._split(state)
        try:
            self._open().load(np.ascontiguousarray(of_core))
        except ValueError as error:
            raise NativeError(f"these envs cannot continue from the state: {error}") from error
        for array, saved in others:
            array[...] = saved.reshape(array.shape)
        self._is_seeded = True

    def _split(self, state: NDArray[np.float64]) -> tuple[NDArray[np.float64], list[tuple[NDArray[Any], Any]]]:
        """The core's array of a saved state, and each array beside the core with what was saved of it."""
        beside = self._beside_the_core()
        widths = [array.size // self.num_envs for array in beside]
        if state.ndim != 2 or len(state) != self.num_envs or state.shape[1] <= sum(widths):
            raise NativeError(f"load_state: pass what save_state returned for these envs, not {_brief(state)}")
        of_core, *saved = np.split(state, np.cumsum([state.shape[1] - sum(widths), *widths[:-1]]), axis=1)
        others = list(zip(beside, saved, strict=True))
        if not all(np.isin(one, (0.0, 1.0)).all() for array, one in others if array.dtype == bool):
            raise NativeError("these envs cannot continue from the state: flags must be 0 or 1")
        return of_core, others

    def _beside_the_core(self) -> list[NDArray[Any]]:
        """What the core does not save: who rests, and what is shown then and afterwards."""
        masks = [] if self._mask is None else [self._mask]
        return [self._resting, *masks, *self._obs, *self._final_obs]

    def _apply_parameters(self, values: Values, before: Values) -> None:
        set_in_core(self._open(), values, self.parameters)

    def close_extras(self, **kwargs: Any) -> None:
        """End the threads."""
        self._engine = None

    def _open(self) -> "Engine":
        if self._engine is None:
            raise NativeError("the envs are closed; create new ones")
        return self._engine

    def _seeds(self, seed: Any) -> list[int]:
        if seed is None:
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        given = [int(seed) + env for env in range(self._num_games)] if _is_whole(seed) else seed
        is_list = isinstance(given, Sequence | np.ndarray) and len(given) == self._num_games
        if not is_list or not all(_is_whole(one) and one >= 0 for one in given):
            raise NativeError(
                f"seed must be a whole number of at least 0, or one for each of the {self._num_games} envs"
            )
        return [int(one) for one in given]

    def _actions(self, actions: Any) -> NDArray[Any]:
        space, is_box = self.action_space, isinstance(self.single_action_space, spaces.Box)
        given = _numbers(actions)
        with np.errstate(all="ignore"):  # what is not in the type becomes some number, which is not what was given
            chosen = np.ascontiguousarray(given, dtype=np.float32 if is_box else np.int64)
        is_valid = np.isfinite(chosen).all() if is_box else (chosen == given).all()
        if given.shape != space.shape or not is_valid:
            raise NativeError(f"actions must be in {space}, not {_brief(actions)}")
        return chosen.reshape(self.num_envs, -1)

    def _chosen(self, options: Any) -> NDArray[np.bool_]:
        """The envs that a reset starts."""
        names = list(options or ()) if isinstance(options, Mapping | None) else [options]
        unknown = [name for name in names if name != RESET_MASK]
        if unknown:
            shown = ", ".join(map(repr, unknown))
            raise NativeError(f"native envs do not take reset options such as {shown}, only {RESET_MASK}")
        if not names:
            return np.ones(self.num_envs, dtype=bool)
        mask = options[RESET_MASK]
        if not isinstance(mask, np.ndarray) or mask.dtype != bool or mask.shape != (self.num_envs,) or not mask.any():
            raise NativeError(f"{RESET_MASK} must mark at least one of the {self.num_envs} envs in a boolean array")
        if (mask != np.repeat(mask[:: self.num_agents], self.num_agents)).any():
            raise NativeError(f"{RESET_MASK} must mark all agents of an env or none of them")
        return mask if self._is_seeded else np.ones(self.num_envs, dtype=bool)

    def _shown(self) -> Any:
        """The observations of all envs; those that rest show the end of their episodes."""
        if not self._resting.any():
            return self._observation(self._obs)
        pairs = zip(self._final_obs, self._obs, strict=True)
        return self._observation([np.where(self._resting[:, None], end, now) for end, now in pairs])

    def _observation(self, leaves: list[NDArray[np.float64]]) -> Any:
        """Copies in the spaces' own types and shapes."""
        space = self.observation_space
        if isinstance(space, spaces.Dict):
            return {
                key: leaf.astype(space[key].dtype).reshape(space[key].shape)
                for key, leaf in zip(self._keys, leaves, strict=True)
            }
        return leaves[0].astype(space.dtype).reshape(space.shape)

    def _info(self, told: NDArray[np.bool_] | None = None) -> dict[str, Any]:
        """The action masks, of all envs or those that have one: an env that rests has none; and who took part."""
        info: dict[str, Any] = {} if self.num_agents == 1 else {"valid": self._valid.copy()}
        if self._mask is None:
            return info
        info["action_mask"] = self._mask.copy()
        return info if told is None else info | {"_action_mask": told}


def _mode(given: Any) -> AutoresetMode:
    try:
        return AutoresetMode(given)
    except ValueError as error:
        known = ", ".join(f"AutoresetMode.{mode.name}" for mode in AutoresetMode)
        raise NativeError(f"autoreset_mode must be one of {known}, not {given!r:.60}") from error


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _require(name: str, value: Any, least: int) -> None:
    if not _is_whole(value) or value < least:
        raise NativeError(f"{name} must be a whole number of at least {least}, not {value!r:.60}")


def _numbers(values: Any) -> NDArray[Any]:
    """An array of numbers, or an empty one that fits no space."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError):  # lists of uneven length, tensors with a gradient
        return np.empty(0)
    return array if array.dtype.kind in "biuf" else np.empty(0)


def _brief(value: Any) -> str:
    return f"{value.dtype} of shape {value.shape}" if isinstance(value, np.ndarray) else quoted(value)


def _factory(env_id: str, kwargs: Mapping[str, Any], limit: int | None) -> Callable[[], Any]:
    if is_library(env_id):
        return library_factory(env_id, kwargs, 0 if limit == NO_LIMIT else limit)
    if env_id.startswith(PETTINGZOO):
        config = EnvConfig(id=env_id, kwargs=dict(kwargs), max_episode_steps=None if limit == NO_LIMIT else limit)
        return pettingzoo_factory(env_id.removeprefix(PETTINGZOO), config)
    return GymnasiumFactory(env_id, kwargs, limit, None)


def core_spaces(engine: "Engine") -> tuple[spaces.Space[Any], spaces.Space[Any]]:
    """In float64, as the core observes."""
    obs = core_obs_spec(engine)
    if isinstance(obs, ArraySpec):
        return _space(obs, np.float64), _space(core_action_spec(engine))
    return spaces.Dict({key: _space(leaf, np.float64) for key, leaf in obs.items()}), _space(core_action_spec(engine))


def _space(spec: ArraySpec, dtype: Any = np.float32) -> spaces.Space[Any]:
    if spec.kind == "discrete":
        return spaces.Discrete(spec.sizes[0], start=spec.start[0])
    if spec.kind == "multi_discrete":
        return spaces.MultiDiscrete(list(spec.sizes), start=list(spec.start))
    if spec.kind == "multi_binary":
        return spaces.MultiBinary(spec.shape)
    low, high = (bound.astype(dtype) for bound in spec.bounds())
    return spaces.Box(low, high, dtype=dtype)
