"""A hook that labels every step with the action of a teacher, which also acts in some rows."""

import torch
from pydantic import Field

from surefoot import PPO, ArraySpec, Hook, PartSettings


class Teacher(Hook):
    """Adds the extra `label`, the action of the teacher; the term `clone` learns it."""

    class Settings(PartSettings):
        """Settings under `hooks.<name>`."""

        checkpoint: str = Field(description="path of the teacher's checkpoint")
        num_rows: int = Field(1, ge=0, description="number of rows in which the teacher acts")

    def __init__(self, settings):
        super().__init__(settings)
        self.settings = settings

    def begin(self):
        self.teacher = PPO.load(self.settings.checkpoint).policy
        self.run.actors.add("teacher", self.teacher, is_followed=True)
        self.run.actors.assign(slice(0, self.settings.num_rows), "teacher")

    def extras(self):
        head = self.run.policy.head
        dtype = str(head.action_dtype).removeprefix("torch.")
        return {"label": ArraySpec("box", head.action_shape, dtype)}

    @torch.no_grad()
    def after_rollout(self, rollout):
        state = self.teacher.initial_state(rollout.reward.shape[1])
        for t, (obs, start) in enumerate(zip(rollout.obs, rollout.episode_start, strict=True)):
            output = self.teacher(obs, state, start)
            rollout.extras["label"][t] = output.distribution.mode()
            state = output.state
