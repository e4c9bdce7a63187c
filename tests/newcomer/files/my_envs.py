"""Two environments that a newcomer might have: one with an image and numbers, one with action masks."""

import gymnasium as gym
import numpy as np

SIDE, CELLS, STEPS, SCALE = 12, 6, 20, 32
SKY, GRASS, FRUIT, BASKET = (150, 200, 255), (60, 140, 60), (220, 40, 40), (250, 220, 60)


class Orchard(gym.Env):
    """Stand below the falling fruit: a small camera image, and the number of fruits that were caught so far."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}
    action_space = gym.spaces.Discrete(3)
    observation_space = gym.spaces.Dict(
        camera=gym.spaces.Box(0, 255, (SIDE, SIDE, 3), np.uint8),
        caught=gym.spaces.Box(0.0, np.inf, (1,), np.float32),
        advice=gym.spaces.Text(20),  # cannot be learned: left out with a warning
    )

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.time, self.caught = SIDE // 2, 0, 0
        self.fruit = int(self.np_random.integers(SIDE)), 0
        return self._observation(), {}

    def step(self, action):
        self.place = int(np.clip(self.place + action - 1, 0, SIDE - 1))
        column, row = self.fruit
        is_down = row == SIDE - 1
        is_caught = is_down and abs(column - self.place) <= 1
        self.fruit = (int(self.np_random.integers(SIDE)), 0) if is_down else (column, row + 1)
        self.time, self.caught = self.time + 1, self.caught + is_caught
        return self._observation(), float(is_caught), False, self.time == 4 * STEPS, {}

    def render(self):
        return self._image().repeat(SCALE, 0).repeat(SCALE, 1)

    def _image(self):
        image = np.full((SIDE, SIDE, 3), SKY, np.uint8)
        image[-1] = GRASS
        image[self.fruit[1], self.fruit[0]] = FRUIT
        image[-1, max(self.place - 1, 0) : self.place + 2] = BASKET
        return image

    def _observation(self):
        return {"camera": self._image(), "caught": np.float32([self.caught]), "advice": "stand below it"}


class Lamps(gym.Env):
    """Light each lamp once, the brightest first; a lamp that is lit is masked out."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 2}
    observation_space = gym.spaces.Box(0.0, 1.0, (CELLS,), np.float32)
    action_space = gym.spaces.Discrete(CELLS)

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.power, self.is_dark = self.np_random.uniform(0.2, 1.0, CELLS), np.ones(CELLS, bool)
        return self._observation(), {"action_mask": self.is_dark}

    def step(self, action):
        assert self.is_dark[action], "masked actions are never taken"
        reward = float(self.power[action] == self.power[self.is_dark].max())
        self.is_dark[action] = False
        is_over = not self.is_dark.any()
        mask = np.ones(CELLS, bool) if is_over else self.is_dark
        return self._observation(), reward, is_over, False, {"action_mask": mask}

    def render(self):
        lamps = np.uint8(255 * self.power * ~self.is_dark)[None, :, None] * np.uint8([1, 1, 0])
        image = np.full((3, 2 * CELLS + 1, 3), 40, np.uint8)
        image[1, 1::2] = np.maximum(lamps[0], np.uint8(90 * self.power)[:, None])
        return image.repeat(SCALE, 0).repeat(SCALE, 1)

    def _observation(self):
        return np.float32(self.power * self.is_dark)


gym.register("Orchard-v0", entry_point=Orchard)
gym.register("Lamps-v0", entry_point=Lamps)
