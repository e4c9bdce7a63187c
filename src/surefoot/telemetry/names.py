"""Metric names, spelled as in existing dashboards."""

EPISODE_REWARD = "rollout/ep_rew_mean"
EPISODE_LENGTH = "rollout/ep_len_mean"
EPISODES = "rollout/episodes"
SUCCESS_RATE = "rollout/success_rate"
OBS_OUT_OF_BOUNDS = "rollout/obs_out_of_bounds"
WORKER_RESTARTS = "rollout/worker_restarts"

STEPS_PER_SECOND = "time/fps"
ROLLOUT_STEPS_PER_SECOND = "time/rollout_fps"
LEARN_STEPS_PER_SECOND = "time/learn_fps"
ITERATION = "time/iterations"
TOTAL_STEPS = "time/total_timesteps"
ELAPSED = "time/time_elapsed"
ROLLOUT_SECONDS = "time/rollout_s"
LEARN_SECONDS = "time/learn_s"

BY_THE_CLOCK = frozenset(
    {
        STEPS_PER_SECOND,
        ROLLOUT_STEPS_PER_SECOND,
        LEARN_STEPS_PER_SECOND,
        ELAPSED,
        ROLLOUT_SECONDS,
        LEARN_SECONDS,
    }
)
"""Metrics that differ between equal runs."""

CPU_WAIT = "system/cpu_wait"
RAM = "system/memory_mb"
RAM_AVAILABLE = "system/memory_available"

TRAIN_PREFIX = "train/"
APPROX_KL = "train/approx_kl"
CLIP_FRACTION = "train/clip_fraction"
CLIP_RANGE = "train/clip_range"
EXPLAINED_VARIANCE = "train/explained_variance"
VALUE_ERROR = "train/value_error"
VALUE_CVAR = "train/value_cvar"
VALUE_SPREAD = "train/value_spread"
POLICY_LOSS = "train/policy_gradient_loss"
VALUE_LOSS = "train/value_loss"
ENTROPY_LOSS = "train/entropy_loss"
ENTROPY_COEF = "train/entropy_coef"
GRAD_NORM = "train/grad_norm"
ACTOR_GRAD_NORM = "train/actor_grad_norm"
CRITIC_GRAD_NORM = "train/critic_grad_norm"
CRITIC1_GRAD_NORM = "train/critic1_grad_norm"
CRITIC2_GRAD_NORM = "train/critic2_grad_norm"
CRITICS_GRAD_RATIO = "train/critics_grad_ratio"
STD = "train/std"
LEARNING_RATE = "train/learning_rate"
EPOCHS = "train/epochs"
SKIPPED_STEPS = "train/skipped_steps"
ROLLBACKS = "train/rollbacks"

MEMORY_PREFIX = "memory/"
PADDING = "memory/padding"
OBS_DRIFT_WITHIN = "normalizer/drift_within"
OBS_DRIFT_ACROSS = "normalizer/drift_across"
OBS_STD_DRIFT_WITHIN = "normalizer/std_drift_within"
OBS_STD_DRIFT_ACROSS = "normalizer/std_drift_across"

RISK_CVAR = "risk/cvar"
RISK_MEAN = "risk/mean"
RISK_CAP = "risk/cap"
RISK_ALPHA = "risk/alpha"
RISK_BETA = "risk/beta"
RISK_NOISE_COST = "risk/noise_cost"

ENV_PREFIX = "env/"
EVAL_PREFIX = "eval/"
EVAL_REWARD = "eval/mean_reward"
EVAL_REWARD_STD = "eval/std_reward"
EVAL_LENGTH = "eval/mean_ep_length"
EVAL_CVAR = "eval/cvar"
EVAL_QUANTILE_PREFIX = "eval/quantile_"
EVAL_WORST = "eval/worst_reward"
EVAL_SHARPE = "eval/sharpe"
EVAL_WIN_RATE = "eval/win_rate"

VIDEO = "video/policy"

ALERT_PREFIX = "warn/"

COUNTS = frozenset({WORKER_RESTARTS, SKIPPED_STEPS})
"""Counts of events per iteration: over a run, their sum is more informative than their maximum."""


def of_env(metric: str) -> str:
    """The name of a metric of the env in training."""
    return SUCCESS_RATE if metric == "success_rate" else ENV_PREFIX + metric
