"""A hook that labels every step with the action of a teacher, which also acts in some rows."""

import torch
from pydantic import Field

from surefoot import ArraySpec, Hook, PartSettings


class Teacher(Hook):
    """Adds the extra `label`, the action of the teacher; the term `clone` learns it."""

    class Settings(PartSettings):
        """Settings under `hooks.<name>`."""

        checkpoint: str = Field(description="a model file, a run directory or zoo:NAME")
        num_rows: int = Field(1, ge=0, description="number of rows in which the teacher acts")

    def __init__(self, settings):
        super().__init__(settings)
        self.settings = settings

    def begin(self):
        self.teacher = self.run.load_policy(self.settings.checkpoint)
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
            mask = None if rollout.action_mask is None else rollout.action_mask[t]
            output = self.teacher(obs, state, start, mask)
            rollout.extras["label"][t] = output.distribution.mode()
            state = output.state
