"""EnvPool under a plain PPO loop: the least that a person would write around its envs."""

import time
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Categorical, Distribution, Normal

from benchmarks import tasks
from benchmarks.peers import PEERS, use_torch_threads
from benchmarks.tasks import Task
from surefoot.benchmark.subject import Window


@PEERS.register("envpool")
class EnvPoolLoop:
    """Collect, score, learn. EnvPool steps on threads of its own, as many as there are cores."""

    title: ClassVar[str] = "EnvPool, plain loop"
    needs: ClassVar[tuple[str, ...]] = ("envpool",)

    def __init__(self, task: Task, threads: int) -> None:
        import envpool

        use_torch_threads(threads)
        self._task = task
        self._envs: Any = envpool.make(task.env, env_type="gymnasium", num_envs=task.num_envs)
        self._agent = Agent(self._envs.observation_space.shape[0], self._envs.action_space, task)
        self._optimizer = torch.optim.Adam(self._agent.parameters(), lr=tasks.LEARNING_RATE, eps=tasks.ADAM_EPS)
        self._obs = _float(self._envs.reset()[0])
        self._is_resetting = torch.zeros(task.num_envs, dtype=torch.bool)

    @classmethod
    def fits(cls, task: Task) -> bool:
        """It has the Gymnasium ids, not envs of other modules; the loop knows no memory."""
        return ":" not in task.env and not task.has_memory

    def run(self, iterations: int) -> Window:
        """Whole iterations."""
        steps, rollout_s, learn_s = 0, 0.0, 0.0
        for _ in range(iterations):
            began = time.perf_counter()
            batch = self._collect()
            collected = time.perf_counter()
            self._learn(batch)
            steps += len(batch["obs"])
            rollout_s += collected - began
            learn_s += time.perf_counter() - collected
        return Window(iterations, steps, rollout_s, learn_s)

    def close(self) -> None:
        """Close the envs."""
        self._envs.close()

    @torch.no_grad()
    def _collect(self) -> dict[str, Tensor]:
        """A rollout as one flat batch, without the steps that only reset."""
        kept: dict[str, list[Tensor]] = {}
        for _ in range(self._task.num_steps):
            policy, value = self._agent(self._obs)
            action = policy.sample()
            obs, reward, terminated, truncated, _ = self._envs.step(self._agent.to_env(action))
            step = {"obs": self._obs, "action": action, "log_prob": log_prob(policy, action), "value": value}
            step |= {"reward": _float(reward), "terminated": torch.from_numpy(terminated)}
            step |= {"ended": torch.from_numpy(terminated | truncated), "valid": ~self._is_resetting}
            for name, part in step.items():
                kept.setdefault(name, []).append(part)
            self._obs, self._is_resetting = _float(obs), step["ended"]
        rollout = {name: torch.stack(parts) for name, parts in kept.items()}
        rollout["advantage"] = advantages(rollout, self._agent(self._obs)[1])
        rollout["returns"] = rollout["advantage"] + rollout["value"]
        return {name: part[rollout["valid"]] for name, part in rollout.items()}

    def _learn(self, batch: dict[str, Tensor]) -> None:
        for _ in range(self._task.epochs):
            for rows in torch.randperm(len(batch["obs"])).split(self._task.batch_size):
                loss = ppo_loss(self._agent, {name: part[rows] for name, part in batch.items()})
                self._optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self._agent.parameters(), tasks.MAX_GRAD_NORM)
                self._optimizer.step()


class Agent(nn.Module):
    """Two networks, and a standard deviation if actions are continuous."""

    def __init__(self, obs_size: int, action_space: Any, task: Task) -> None:
        super().__init__()
        self._is_discrete = hasattr(action_space, "n")
        self._bounds = None if self._is_discrete else (action_space.low, action_space.high)
        actions = int(action_space.n if self._is_discrete else action_space.shape[0])
        self.actor = network(obs_size, actions, 0.01, task)
        self.critic = network(obs_size, 1, 1.0, task)
        self.log_std = nn.Parameter(torch.zeros(0 if self._is_discrete else actions))

    def forward(self, obs: Tensor) -> tuple[Distribution, Tensor]:
        """The distribution of actions, and the value."""
        output, value = self.actor(obs), self.critic(obs)[:, 0]
        if self._is_discrete:
            return Categorical(logits=output, validate_args=False), value
        return Normal(output, self.log_std.exp(), validate_args=False), value

    def to_env(self, action: Tensor) -> Any:
        """Within the bounds."""
        return action.numpy() if self._bounds is None else np.clip(action.numpy(), *self._bounds)


def network(inputs: int, outputs: int, gain: float, task: Task) -> nn.Sequential:
    """Hidden layers, then a linear one."""
    activation = {"tanh": nn.Tanh, "relu": nn.ReLU}[task.activation]
    layers: list[nn.Module] = []
    for size in task.hidden:
        layers += [_linear(inputs, size, 2**0.5), activation()]
        inputs = size
    return nn.Sequential(*layers, _linear(inputs, outputs, gain))


def advantages(rollout: dict[str, Tensor], last_value: Tensor) -> Tensor:
    """GAE. The observation after an ending is still that of its episode, so its value is the one to bootstrap from."""
    following = torch.cat((rollout["value"][1:], last_value[None]))
    delta = rollout["reward"] + tasks.GAMMA * following.masked_fill(rollout["terminated"], 0) - rollout["value"]
    result, carried = torch.zeros_like(delta), torch.zeros_like(last_value)
    for t in reversed(range(len(delta))):
        carried = delta[t] + tasks.GAMMA * tasks.GAE_LAMBDA * carried.masked_fill(rollout["ended"][t], 0)
        carried = carried.masked_fill(~rollout["valid"][t], 0)
        result[t] = carried
    return result


def ppo_loss(agent: Agent, batch: dict[str, Tensor]) -> Tensor:
    """Clipped surrogate and squared value error, advantages normalized over the minibatch."""
    policy, value = agent(batch["obs"])
    advantage = batch["advantage"]
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    ratio = (log_prob(policy, batch["action"]) - batch["log_prob"]).exp()
    clipped = ratio.clamp(1 - tasks.CLIP, 1 + tasks.CLIP)
    surrogate = torch.minimum(ratio * advantage, clipped * advantage).mean()
    loss: Tensor = tasks.VALUE_COEF * (value - batch["returns"]).square().mean() - surrogate
    return loss


def log_prob(policy: Distribution, action: Tensor) -> Tensor:
    """Of whole actions."""
    parts: Tensor = policy.log_prob(action)
    return parts.sum(-1) if parts.dim() > 1 else parts


def _linear(inputs: int, outputs: int, gain: float) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


def _float(array: Any) -> Tensor:
    return torch.from_numpy(np.asarray(array, np.float32))
