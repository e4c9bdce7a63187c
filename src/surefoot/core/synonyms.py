"""What other libraries call our settings: Stable-Baselines3, CleanRL, RSL-RL, RLlib and Sample Factory."""

_SETTINGS = {
    "env.id": ("env_id", "env_name", "gym_id"),
    "env.kwargs": ("env_kwargs", "env_config"),
    "rollout.num_envs": ("n_envs", "num_envs_per_worker", "num_envs_per_env_runner", "num_environments"),
    "rollout.num_steps": ("n_steps", "num_steps_per_env", "rollout_fragment_length", "nsteps", "horizon_length"),
    "rollout.workers": ("num_workers", "num_env_runners", "num_rollout_workers"),
    "rollout.sequence_length": ("recurrence", "seq_len", "bptt_horizon", "max_seq_len"),
    "ppo.epochs": ("n_epochs", "update_epochs", "num_learning_epochs", "num_sgd_iter", "num_epochs", "noptepochs"),
    "ppo.batch_size": ("minibatch_size", "sgd_minibatch_size"),
    "ppo.gamma": ("discount", "discount_factor"),
    "ppo.gae_lambda": ("lam", "lambda", "lambda_", "gae_lam"),
    "ppo.clip": ("clip_range", "clip_coef", "clip_param", "cliprange", "ppo_clip_ratio", "clip_ratio", "clip_epsilon"),
    "ppo.entropy_coef": ("ent_coef", "entropy_coeff", "exploration_loss_coeff", "entropy_loss_coef", "entropy_weight"),
    "ppo.value_coef": ("vf_coef", "value_loss_coef", "vf_loss_coeff", "value_loss_coeff", "critic_coef"),
    "ppo.max_grad_norm": ("grad_clip", "max_gradient_norm"),
    "ppo.target_kl": ("kl_target",),
    "optimizer.lr": ("learning_rate", "step_size"),
    "optimizer.adam_eps": ("eps", "adam_epsilon", "optimizer_eps"),
    "optimizer.weight_decay": ("l2",),
    "policy.hidden": (
        *("net_arch", "hidden_sizes", "hidden_dims", "actor_hidden_dims", "critic_hidden_dims", "fcnet_hiddens"),
        "encoder_mlp_layers",
    ),
    "policy.activation": ("activation_fn", "nonlinearity", "fcnet_activation"),
    "policy.orthogonal_init": ("ortho_init",),
    "policy.distribution.log_std": ("log_std_init",),
    "policy.distribution": ("squash_output", "action_distribution"),
    "policy.memory": ("rnn_type", "use_lstm", "use_rnn", "lstm"),
    "policy.memory.hidden_size": ("rnn_hidden_dim", "rnn_hidden_size", "lstm_hidden_size", "lstm_cell_size"),
    "policy.memory.layers": ("rnn_num_layers", "n_lstm_layers"),
    "policy.share_trunk": ("vf_share_layers", "actor_critic_share_weights", "shared_lstm"),
    "policy.encoder": ("features_extractor_class", "features_extractor"),
    "policy": ("policy_kwargs",),
    "normalize.obs": ("norm_obs", "normalize_input", "empirical_normalization", "normalize_observations"),
    "normalize.obs_clip": ("clip_obs",),
    "normalize.reward": ("norm_reward", "normalize_reward", "reward_scaling"),
    "normalize.reward_clip": ("clip_reward",),
    "normalize.returns": ("normalize_returns", "normalize_value"),
    "train.steps": ("total_timesteps", "n_timesteps", "train_for_env_steps", "total_steps", "num_timesteps"),
    "train.eval_every": ("eval_freq", "evaluation_interval"),
    "train.eval_episodes": ("n_eval_episodes", "evaluation_duration", "num_eval_episodes"),
    "train.checkpoint_every": ("save_freq", "save_interval", "checkpoint_freq", "save_every_steps"),
    "train.keep_checkpoints": ("num_to_keep",),
    "train.device": ("use_gpu", "accelerator", "rl_device", "torch_device"),
    "train.threads": ("num_threads", "torch_num_threads"),
    "log.tensorboard": ("tensorboard_log", "tb_log_name"),
    "log.wandb": ("track", "with_wandb"),
    "log.wandb_project": ("wandb_project_name",),
    "log.log_every": ("log_interval",),
}
_ADVICE = {
    "clip_range_vf": "set ppo.clip_value to the clip range of the value loss",
    "clip_vloss": "set ppo.clip_value to the clip range of the value loss, such as 0.2",
    "use_clipped_value_loss": "set ppo.clip_value to the clip range of the value loss, such as 0.2",
    "vf_clip_param": "set ppo.clip_value to the clip range of the value loss",
    "norm_adv": "set ppo.advantage_norm to minibatch, rollout or none",
    "normalize_advantage": "set ppo.advantage_norm to minibatch, rollout or none",
    "normalize_advantage_per_mini_batch": "set ppo.advantage_norm to minibatch or rollout",
    "anneal_lr": "set schedules.lr to linear",
    "lr_schedule": "set schedules.lr to linear, cosine or kl_adaptive",
    "schedule": "set schedules.lr to linear, cosine or kl_adaptive",
    "desired_kl": "set schedules.lr to kl_adaptive; its setting desired_kl is schedules.lr.desired_kl",
    "num_minibatches": "set ppo.batch_size to rollout.num_envs x rollout.num_steps / num_minibatches",
    "num_mini_batches": "set ppo.batch_size to rollout.num_envs x rollout.num_steps / num_mini_batches",
    "num_batches_per_epoch": "set ppo.batch_size to rollout.num_envs x rollout.num_steps / num_batches_per_epoch",
    "nminibatches": "set ppo.batch_size to rollout.num_envs x rollout.num_steps / nminibatches",
    "train_batch_size": "a rollout has rollout.num_envs x rollout.num_steps steps; set these two",
    "max_iterations": "set train.steps: an iteration has rollout.num_envs x rollout.num_steps steps",
    "num_iterations": "set train.steps: an iteration has rollout.num_envs x rollout.num_steps steps",
    "init_noise_std": "set policy.distribution.log_std to its logarithm",
    "initial_stddev": "set policy.distribution.log_std to its logarithm",
    "kl_coeff": "add the term kl_penalty: ppo.terms.kl_penalty.weight",
    "use_sde": "Surefoot has no state-dependent exploration; try policy.distribution gaussian with log_std -2",
    "policy_class": "pass policy=, a surefoot.Policy, or settings of the section policy",
    "verbose": "set log.console to plain, live, line or off (in Python: learn(..., progress=False))",
    "progress_bar": "set log.console to line or live (in Python: learn(..., progress=True))",
    "cuda": "set train.device to cuda or cpu",
    "num_gpus": "set train.device to cuda; several GPUs learn together with torchrun",
    "callback": "pass hooks: learn(..., hooks=[...]), or hooks in the settings",
    "callbacks": "pass hooks: learn(..., hooks=[...]), or hooks in the settings",
    "render_mode": "pass it to the environment, in env.kwargs",
    "exp_name": "choose the directory of the run with --run-dir (in Python: learn(..., run_dir=...))",
    "experiment_name": "choose the directory of the run with --run-dir (in Python: learn(..., run_dir=...))",
    "train_dir": "choose the directory of the run with --run-dir (in Python: learn(..., run_dir=...))",
    "torch_deterministic": "runs are always repeatable; there is nothing to set",
}
_OF_CALLS = {
    "total_timesteps": "pass it first: learn(100_000)",
    "progress_bar": "pass progress=True or False",
    "verbose": "pass progress=True or False",
    "callback": "pass hooks=[...]",
    "callbacks": "pass hooks=[...]",
    "log_interval": "set log_every: PPO(..., log_every=10)",
    "reset_num_timesteps": "learn always continues; create a new agent to start again",
    "n_eval_episodes": "pass episodes",
    "action_masks": "pass action_mask",
}
"""Arguments of functions of Stable-Baselines3."""
_OF_AGENTS = {
    "get_env": "make an env of your own, or pass one: evaluate(env=...)",
    "set_env": "save the agent, then PPO.load(path, env=...)",
    "num_timesteps": "see steps_trained",
    "get_parameters": "see policy.state_dict()",
    "set_parameters": "use policy.load_state_dict(...)",
    "logger": "a hook adds metrics: report.metrics['name'] = value",
    "set_logger": "add a sink: log.sinks",
    "set_random_seed": "pass seed to PPO(...)",
}
"""Attributes of Stable-Baselines3's agents."""
_KNOWN = {name: setting for setting, names in _SETTINGS.items() for name in names}


def elsewhere_called(name: str, form: str = "'{}'") -> str:
    """What a name of another library is called here, as the end of a message; empty if it is not known."""
    if name in _KNOWN:
        return f"; Surefoot calls it {form.format(_KNOWN[name])}"
    return f"; {_ADVICE[name]}" if name in _ADVICE else ""


def of_call(name: str) -> str:
    """What an argument of another library's functions is called here, as the end of a message."""
    return f"; {_OF_CALLS[name]}" if name in _OF_CALLS else elsewhere_called(name)


def of_agent(name: str) -> str:
    """What replaces an attribute of another library's agents, as the end of a message."""
    return f"; {_OF_AGENTS[name]}" if name in _OF_AGENTS else ""


def meant_settings() -> dict[str, str]:
    """The setting that each name of another library stands for."""
    return dict(_KNOWN)
