"""The envs of an agent: those that it trains in, and others like them that evaluate, show or export it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from surefoot.compose import Specs, build_env, build_stage
from surefoot.envs.make import EnvSource, is_instance
from surefoot.envs.protocol import VecEnv
from surefoot.envs.protocol.agent_parameters import Values, set_agent_values
from surefoot.errors import CheckpointError, EnvError
from surefoot.rollout.rows import Rows
from surefoot.saved_run import check_spaces, untrusted_cluster, untrusted_env
from surefoot.settings.config import Config
from surefoot.settings.layers import build_config
from surefoot.storage.trust import Trust
from surefoot.watching.stage import MOST_FPS, RenderMode, Stage


class AgentEnvs:
    """Builds envs of an agent; a file that is not trusted makes it neither import nor connect to anything."""

    def __init__(self, config: Config, specs: Specs, source: EnvSource | None, training: VecEnv | None = None) -> None:
        self.source, self.training = source, training
        self.rows: Rows | None = None
        """The rows that train; an env instance is theirs, and they lend it."""
        self._config, self._specs = config, specs
        self._is_closed = False
        self.file: Path | str = "the saved state"
        self._untrusted = self._untrusted_cluster = ""

    def distrust(self, file: Path, config: Config, trust: Trust, has_own: bool) -> None:
        """Remember what a file names that is not trusted; only envs that the user passed need no trust."""
        self.file, self._untrusted = file, "" if has_own else untrusted_env(config, trust)
        self._untrusted_cluster = untrusted_cluster(config, trust)

    def copy(self) -> "AgentEnvs":
        """For a copy of the agent, which will build its own."""
        other = AgentEnvs(self._config, self._specs, self.source)
        other.file, other._untrusted, other._untrusted_cluster = self.file, self._untrusted, self._untrusted_cluster
        return other

    def to_train(self) -> VecEnv:
        """The training envs, built on first use."""
        self._refuse_closed()
        self.training = self.training or self._build(self.source)
        return self.training

    def close(self) -> None:
        """Close the training envs; those of a source that is not an instance can be built again."""
        self.rows = None
        if self.training is not None:
            self.training.close()
            self.training, self._is_closed = None, True

    @contextmanager
    def like_ours(
        self, env: EnvSource | None, seed: int, rows: int, of_agent: Values, kwargs: Mapping[str, Any] | None = None
    ) -> Iterator[VecEnv]:
        """The given env, or new envs like those used for training; an instance is lent by the rows that train."""
        source = self.source if env is None else env
        if env is None and is_instance(source):
            self._refuse_closed()
        is_ours = is_instance(source) and source is self.source
        with self.rows.lent() if is_ours and self.rows is not None else nullcontext():
            vec_env = self._build(source, seed, rows, kwargs)
            try:
                check_spaces(vec_env, self._specs)
                set_agent_values(vec_env, of_agent)
                yield vec_env
            finally:
                if not is_instance(source):
                    vec_env.close()

    @contextmanager
    def stage(
        self, caller: str, env: EnvSource | None, mode: RenderMode, seed: int, of_agent: Values, fps: float = MOST_FPS
    ) -> Iterator[Stage]:
        """One env like those used for training that is drawn, or the given one."""
        source = self.source if env is None else env
        if env is None and is_instance(source):
            raise EnvError(
                f"this agent was given an env instance, which cannot be created again; pass an env: {caller}(env=...)"
            )
        self._check_trusted(source)
        stage = build_stage(self._config, source, mode, fps, of_agent)
        try:
            check_spaces(stage.shard(0, seed), self._specs)
            yield stage
        finally:
            stage.close()

    def declared_over(self, axes: Mapping[str, Any], env: EnvSource | None, of_agent: Values) -> set[str]:
        """Which names of a grid are parameters of the envs; the others must be arguments of their constructor."""
        source = self.source if env is None else env
        if is_instance(source):
            raise EnvError("an env instance cannot be created again for every cell; pass a function that creates it")
        with self.like_ours(env, 0, 1, of_agent) as first:
            declared = set(axes) & set(first.parameters)
        if not isinstance(source, str | None) and (others := sorted(set(axes) - declared)):
            raise EnvError(
                f"{', '.join(others)}: these envs declare no such parameter, and a function that creates envs takes no"
                " arguments; pass the id of the env"
            )
        return declared

    def _build(
        self,
        source: EnvSource | None,
        seed: int | None = None,
        rows: int = 0,
        kwargs: Mapping[str, Any] | None = None,
    ) -> VecEnv:
        self._check_trusted(source)
        if seed is None and self._untrusted_cluster:
            raise CheckpointError(
                f"{self.file} wants to connect to the Ray cluster at '{self._untrusted_cluster}'; if you trust it,"
                " load the file with trust=True, or with trust={its address}"
            )
        changed = {"env.eval_kwargs": {**self._config.env.eval_kwargs, **kwargs}} if kwargs else {}
        config = build_config(self._config.model_dump(mode="json"), changed) if changed else self._config
        return build_env(config, source, seed, rows)

    def _check_trusted(self, source: EnvSource | None) -> None:
        if source is None and self._untrusted:
            raise CheckpointError(
                f"{self.file} wants to import '{self._untrusted}'; if you trust it, pass --env"
                f" {self._config.env.id} or --trust (in Python: env=... or trust=True)"
            )

    def _refuse_closed(self) -> None:
        if self._is_closed and is_instance(self.source):
            raise EnvError("the env instance of this agent is closed; save the agent, then PPO.load(path, env=...)")
