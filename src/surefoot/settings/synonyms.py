"""What other libraries call our settings.

Stable-Baselines3, CleanRL, RSL-RL, RLlib, Sample Factory, rl_games, skrl, PufferLib, ML-Agents and Brax.
"""

_SETTINGS = {
    "env.id": "env_id env_name gym_id",
    "env.kwargs": "env_kwargs env_config",
    "rollout.num_envs": "n_envs num_envs_per_worker num_envs_per_env_runner num_environments num_actors",
    "rollout.num_steps": (
        "n_steps num_steps_per_env rollout_fragment_length nsteps horizon_length rollouts rollout_steps "
        "unroll_length time_horizon"
    ),
    "rollout.workers": "num_workers num_env_runners num_rollout_workers",
    "rollout.sequence_length": (
        "recurrence seq_len bptt_horizon max_seq_len bptt_length seq_length rnn_sequence_length"
    ),
    "ppo.epochs": (
        "n_epochs update_epochs num_learning_epochs num_sgd_iter num_epochs noptepochs mini_epochs "
        "learning_epochs num_epoch num_updates_per_batch"
    ),
    "ppo.batch_size": "minibatch_size sgd_minibatch_size mini_batch_size",
    "ppo.gamma": "discount discount_factor",
    "ppo.gae_lambda": "lam lambda lambda_ gae_lam tau lambd",
    "ppo.clip": (
        "clip_range clip_coef clip_param cliprange ppo_clip_ratio clip_ratio clip_epsilon e_clip ratio_clip "
        "clipping_epsilon"
    ),
    "ppo.entropy_coef": (
        "ent_coef entropy_coeff exploration_loss_coeff entropy_loss_coef entropy_weight entropy_loss_scale entropy_cost"
    ),
    "ppo.value_coef": "vf_coef value_loss_coef vf_loss_coeff value_loss_coeff critic_coef value_loss_scale",
    "ppo.max_grad_norm": "grad_clip max_gradient_norm grad_norm grad_norm_clip",
    "ppo.target_kl": "kl_target",
    "optimizer.lr": "learning_rate step_size",
    "optimizer.adam_eps": "eps adam_epsilon optimizer_eps",
    "optimizer.weight_decay": "l2",
    "optimizer.betas": "adam_beta1 adam_beta2 adam_betas",
    "optimizer.algorithm": "optimizer_class",
    "ppo.micro_batch_size": "max_minibatch_size microbatch_size",
    "rollout.groups": "worker_num_splits",
    "train.best_metric": "save_best_metric",
    "policy.hidden": (
        "net_arch hidden_sizes hidden_dims actor_hidden_dims fcnet_hiddens encoder_mlp_layers hidden_units units"
    ),
    "policy.critic_hidden": "critic_hidden_dims",
    "policy.activation": "activation_fn nonlinearity fcnet_activation",
    "policy.orthogonal_init": "ortho_init",
    "policy.distribution.log_std": "log_std_init",
    "policy.distribution": "squash_output action_distribution",
    "policy.memory": "rnn_type use_lstm use_rnn lstm",
    "policy.memory.hidden_size": "rnn_hidden_dim rnn_hidden_size lstm_hidden_size lstm_cell_size memory_size",
    "policy.memory.layers": "rnn_num_layers n_lstm_layers rnn_layers",
    "policy.share_trunk": "vf_share_layers actor_critic_share_weights shared_lstm",
    "policy.encoder": "features_extractor_class features_extractor vis_encode_type",
    "policy": "policy_kwargs",
    "normalize.obs": (
        "norm_obs normalize_input empirical_normalization normalize_observations actor_obs_normalization "
        "critic_obs_normalization observation_filter state_preprocessor"
    ),
    "normalize.obs_clip": "clip_obs",
    "normalize.reward": "norm_reward normalize_reward reward_scaling reward_shaper rewards_shaper",
    "normalize.reward_clip": "clip_reward",
    "normalize.returns": "normalize_returns normalize_value value_preprocessor",
    "train.steps": (
        "total_timesteps n_timesteps train_for_env_steps total_steps num_timesteps max_steps timesteps "
        "total_frames num_frames num_env_steps max_env_steps"
    ),
    "train.eval_every": "eval_freq evaluation_interval eval_interval evaluation_freq",
    "train.eval_episodes": "n_eval_episodes evaluation_duration num_eval_episodes",
    "train.checkpoint_every": (
        "save_freq save_interval checkpoint_freq save_every_steps checkpoint_interval checkpoint_frequency "
        "save_frequency"
    ),
    "train.keep_checkpoints": "num_to_keep max_to_keep max_checkpoints",
    "train.device": "use_gpu accelerator rl_device torch_device",
    "train.threads": "num_threads torch_num_threads",
    "log.tensorboard": "tensorboard_log tb_log_name",
    "log.wandb": "track with_wandb",
    "log.wandb_project": "wandb_project_name",
    "log.wandb_name": "wandb_run_name wandb_run",
    "log.log_every": "log_interval log_freq write_interval print_freq summary_freq",
}
_ADVICE = {
    "clip_range_vf": "set ppo.clip_value to the clip range of the value loss",
    "clip_vloss": "set ppo.clip_value to the clip range of the value loss, such as 0.2",
    "use_clipped_value_loss": "set ppo.clip_value to the clip range of the value loss, such as 0.2",
    "vf_clip_param": "set ppo.clip_value to the clip range of the value loss",
    "vf_clip_coef": "set ppo.clip_value to the clip range of the value loss",
    "value_clip": "set ppo.clip_value to the clip range of the value loss",
    "clip_predicted_values": "set ppo.clip_value to the clip range of the value loss, such as 0.2",
    "norm_adv": "set ppo.advantage_norm to minibatch, rollout or none",
    "normalize_advantage": "set ppo.advantage_norm to minibatch, rollout or none",
    "normalize_advantage_per_mini_batch": "set ppo.advantage_norm to minibatch or rollout",
    "anneal_lr": "set schedules.lr to linear",
    "lr_schedule": "set schedules.lr to linear, cosine or kl_adaptive",
    "schedule": "set schedules.lr to linear, cosine or kl_adaptive",
    "learning_rate_schedule": "set schedules.lr to linear, cosine or kl_adaptive",
    "learning_rate_scheduler": "set schedules.lr to linear, cosine or kl_adaptive",
    "min_lr": "set schedules.lr to cosine, which ends at schedules.lr.floor, a share of optimizer.lr",
    "lr_min": "set schedules.lr to cosine, which ends at schedules.lr.floor, a share of optimizer.lr",
    "min_lr_ratio": "set schedules.lr to cosine, which ends at schedules.lr.floor, a share of optimizer.lr",
    **dict.fromkeys(
        ("ent_coef_min", "ent_coef_final", "ent_coef_end", "ent_coef_decay", "ent_coef_schedule", "final_ent_coef"),
        "set schedules.entropy_coef to cosine or entropy_adaptive; schedules.entropy_coef.floor is its lowest value, as"
        " a share of ppo.entropy_coef",
    ),
    "kl_threshold": "set schedules.lr to kl_adaptive; the threshold is schedules.lr.desired_kl",
    "desired_kl": "set schedules.lr to kl_adaptive; its setting desired_kl is schedules.lr.desired_kl",
    "num_minibatches": "set ppo.batch_size to rollout.num_envs x rollout.num_steps / num_minibatches",
    "num_mini_batches": "set ppo.batch_size to rollout.num_envs x rollout.num_steps / num_mini_batches",
    "num_batches_per_epoch": "set ppo.batch_size to rollout.num_envs x rollout.num_steps / num_batches_per_epoch",
    "mini_batches": "set ppo.batch_size to rollout.num_envs x rollout.num_steps / mini_batches",
    "gradient_accumulation_steps": "set ppo.micro_batch_size to ppo.batch_size / gradient_accumulation_steps",
    "nminibatches": "set ppo.batch_size to rollout.num_envs x rollout.num_steps / nminibatches",
    "train_batch_size": "a rollout has rollout.num_envs x rollout.num_steps steps; set these two",
    "buffer_size": "a rollout has rollout.num_envs x rollout.num_steps steps; set these two",
    **dict.fromkeys(
        ("max_iterations", "num_iterations", "updates", "num_updates", "n_updates", "total_updates", "max_epochs"),
        "set train.steps: an iteration, with one update, has rollout.num_envs x rollout.num_steps steps",
    ),
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
    "env_file": "name the env: env.id my_module:MyEnv-v0 for a Python module, env.id ./my_env.so for a C++ library",
    "value_bootstrap": "time limits are always bootstrapped; there is nothing to set",
    "time_limit_bootstrap": "time limits are always bootstrapped; there is nothing to set",
    "run_name": "choose the directory of the run with --run-dir; log.wandb_name names it in W&B",
    "wandb_entity": "set the environment variable WANDB_ENTITY",
    "wandb_user": "set the environment variable WANDB_ENTITY",
    "wandb_mode": "set the environment variable WANDB_MODE",
    "wandb_tags": "set the environment variable WANDB_TAGS",
    "wandb_group": "the group in W&B is the name of the run directory: --run-dir",
    "load_run": "continue a run with 'surefoot resume RUN', or start from one with --from RUN",
    "stats_window_size": "statistics of episodes are means over the last 100; there is nothing to set",
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
KNOWN = {name: setting for setting, names in _SETTINGS.items() for name in names.split()}
"""The setting that each name of another library stands for."""


def elsewhere_called(name: str, form: str = "'{}'") -> str:
    """What a name of another library is called here, as the end of a message; empty if it is not known."""
    if name in KNOWN:
        return f"; Surefoot calls it {form.format(KNOWN[name])}"
    return f"; {_ADVICE[name]}" if name in _ADVICE else ""


def of_call(name: str) -> str:
    """What an argument of another library's functions is called here, as the end of a message."""
    return f"; {_OF_CALLS[name]}" if name in _OF_CALLS else elsewhere_called(name)


def of_agent(name: str) -> str:
    """What replaces an attribute of another library's agents, as the end of a message."""
    return f"; {_OF_AGENTS[name]}" if name in _OF_AGENTS else ""
