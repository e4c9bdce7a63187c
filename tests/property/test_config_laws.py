import yaml
from hypothesis import given
from hypothesis import strategies as st

from surefoot.settings.config import Config, known_keys
from surefoot.settings.layers import build_config, by_name, merge, to_yaml

positive = st.floats(1e-8, 1e3)
fraction = st.floats(0, 1)
sizes = st.lists(st.integers(1, 512), max_size=4)
words = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=8)
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**60), 2**60), st.floats(allow_nan=False), st.text(max_size=8)
)
encoder = st.one_of(
    st.sampled_from(["auto", "conv", "mlp"]),
    st.fixed_dictionaries({"kind": st.sampled_from(["auto", "conv"])}, optional={"features": st.integers(1, 99)}),
    st.fixed_dictionaries({"kind": st.just("mlp")}, optional={"layers": sizes}),
)
memory = st.one_of(
    st.sampled_from(["none", "gru", "lstm"]),
    st.fixed_dictionaries(
        {"kind": st.sampled_from(["gru", "lstm"])},
        optional={"hidden_size": st.integers(1, 512), "layers": st.integers(1, 4)},
    ),
)
gaussian = st.fixed_dictionaries(
    {"kind": st.sampled_from(["auto", "gaussian", "tanh_gaussian"])},
    optional={
        "std": st.sampled_from(["learned", "fixed", "state"]),
        "log_std": st.floats(-5, 2),
        "log_std_groups": st.dictionaries(st.sampled_from(["0:3", "3:9"]), st.floats(-5, 2)),
        "std_floor": positive,
        "action_bounds": st.sampled_from(["clip", "rescale"]),
    },
)
distribution = st.one_of(st.sampled_from(["auto", "categorical", "gaussian", "beta"]), gaussian)
engine = st.one_of(
    st.sampled_from(["auto", "local", "native", "processes"]),
    st.fixed_dictionaries(
        {"kind": st.just("processes")}, optional={"step_timeout_s": positive, "max_restarts": st.integers(0, 99)}
    ),
)
schedule = st.one_of(
    st.sampled_from(["constant", "linear", "cosine", "kl_adaptive"]),
    st.fixed_dictionaries({"kind": st.just("cosine")}, optional={"floor": fraction}),
    st.fixed_dictionaries({"kind": st.just("kl_adaptive")}, optional={"desired_kl": positive}),
)
clip_norm = st.fixed_dictionaries({"kind": st.just("clip_norm")}, optional={"max_norm": positive})
good_enough = st.fixed_dictionaries({"kind": st.just("stop_at_return"), "value": st.floats(-1e3, 1e3)})

# A strategy for every key; `rollout` and `batch_size` divide each other because all are powers of 2 in order.
STRATEGIES = {
    "env.id": words,
    "env.kwargs": st.dictionaries(words, st.one_of(scalars, st.lists(scalars, max_size=3)), max_size=3),
    "env.eval_kwargs": st.dictionaries(words, st.one_of(scalars, st.lists(scalars, max_size=3)), max_size=3),
    "env.max_episode_steps": st.one_of(st.none(), st.integers(1, 10**9)),
    "env.metrics": st.dictionaries(words, st.sampled_from(["last", "mean", "sum"]), max_size=2),
    "env.truncation_as_termination": st.booleans(),
    "policy.encoder": encoder,
    "policy.encoders": st.dictionaries(words, encoder, max_size=2),
    "policy.memory": memory,
    "policy.share_memory": st.booleans(),
    "policy.hidden": sizes,
    "policy.critic_hidden": st.none() | sizes,
    "policy.activation": st.sampled_from(["tanh", "relu", "elu", "silu", "leaky_relu", "gelu"]),
    "policy.share_trunk": st.booleans(),
    "policy.orthogonal_init": st.booleans(),
    "policy.distribution": distribution,
    "policy.critic": st.sampled_from(["scalar", {"kind": "scalar"}]),
    "policy.critic_obs": st.lists(words, max_size=2),
    "policy.precision": st.sampled_from(["float32", "bfloat16"]),
    "rollout.num_envs": st.sampled_from([8, 16, 64]),
    "rollout.num_steps": st.sampled_from([32, 256]),
    "rollout.sequence_length": st.integers(1, 512),
    "rollout.engine": engine,
    "rollout.workers": st.integers(0, 64),
    "rollout.groups": st.integers(0, 64),
    "ppo.gamma": fraction,
    "ppo.gae_lambda": fraction,
    "ppo.estimator": st.sampled_from(["gae", {"kind": "gae"}]),
    "ppo.terms": st.dictionaries(
        words.map("{}_term".format), st.sampled_from(["entropy", {"kind": "value"}]), max_size=2
    ),
    "ppo.epochs": st.integers(1, 99),
    "ppo.batch_size": st.sampled_from([64, 128, 256]),
    "ppo.micro_batch_size": st.one_of(st.none(), st.integers(1, 64)),
    "ppo.sequence_state": st.sampled_from(["stored", "recomputed"]),
    "ppo.burn_in": st.just(0),
    "ppo.clip": positive,
    "ppo.clip_value": st.one_of(st.none(), positive),
    "ppo.entropy_coef": st.floats(0, 1),
    "ppo.surrogate_coef": st.floats(0, 1),
    "ppo.value_coef": st.floats(0, 9),
    "ppo.max_grad_norm": st.one_of(st.none(), positive),
    "ppo.target_kl": st.one_of(st.none(), positive),
    "ppo.advantage_norm": st.sampled_from(["rollout", "minibatch", "none"]),
    "optimizer.algorithm": st.sampled_from(["adam", "adamw"]),
    "optimizer.lr": positive,
    "optimizer.adam_eps": positive,
    "optimizer.betas": st.tuples(st.floats(0, 0.999), st.floats(0, 0.999)),
    "optimizer.weight_decay": st.floats(0, 1),
    "optimizer.transforms": st.dictionaries(words.map("{}_transform".format), clip_norm, max_size=2),
    "optimizer.clip_grad": st.sampled_from(["together", "apart"]),
    "optimizer.frozen": st.lists(st.sampled_from(["actor", "critic", "*.bias", "head.log_std"]), max_size=2),
    "normalize.obs": st.booleans(),
    "normalize.obs_clip": positive,
    "normalize.reward": st.booleans(),
    "normalize.reward_clip": positive,
    "normalize.returns": st.booleans(),
    "normalize.return_stats": st.sampled_from(["current", "previous"]),
    "train.steps": st.integers(1, 10**12),
    "train.best_metric": st.sampled_from(["mean_reward", "cvar", "success", "-falls"]),
    "train.cvar_alpha": st.floats(0, 1, exclude_min=True),
    "train.seed": st.integers(0, 2**63 - 1),
    "train.checkpoint_every": st.integers(1, 10**9),
    "train.keep_checkpoints": st.integers(1, 99),
    "train.eval_every": st.integers(0, 10**9),
    "train.eval_episodes": st.integers(0, 99),
    "train.threads": st.integers(0, 64),
    "train.learner": st.sampled_from(["auto", "torch", "native"]),
    "train.device": st.sampled_from(["auto", "cpu"]),
    "train.video_every": st.integers(0, 10**9),
    "train.video_episodes": st.integers(1, 99),
    "train.video_steps": st.integers(1, 10**6),
    "train.video_format": st.sampled_from(["mp4", "gif"]),
    "train.start_from": st.none() | st.sampled_from(["zoo:CartPole-v1", "runs/mine", "policy.safetensors"]),
    "train.max_skipped_steps": st.integers(1, 99),
    "train.max_rollbacks": st.integers(0, 99),
    "log.console": st.sampled_from(["auto", "live", "line", "plain", "off"]),
    "log.tensorboard": st.booleans(),
    "log.wandb": st.booleans(),
    "log.wandb_project": words,
    "log.wandb_name": st.none() | words,
    "log.sinks": st.just({}),
    "log.log_every": st.integers(1, 99),
}
PARTS = {"schedules.lr": schedule, "schedules.clip": schedule, "hooks.enough": good_enough}
settings_by_key = st.fixed_dictionaries({}, optional=STRATEGIES)


def value_of(config: Config, key: str):
    section, _, name = key.partition(".")
    return getattr(getattr(config, section), name)


def test_every_key_has_a_strategy():
    assert set(STRATEGIES) == set(known_keys())


@given(st.fixed_dictionaries({}, optional=STRATEGIES | PARTS))
def test_a_config_survives_its_yaml(settings):
    config = build_config(settings)
    text = to_yaml(config)
    assert build_config(yaml.safe_load(text)) == config
    assert to_yaml(build_config(yaml.safe_load(text))) == text


# A section within a section keeps what a later layer does not say; that has examples in tests/settings/test_config.py.
WHOLE = {
    "policy.encoder": st.sampled_from(["auto", "conv", "mlp"]),
    "policy.encoders": st.fixed_dictionaries({"camera": st.sampled_from(["auto", "conv", "mlp"])}),
    "policy.memory": st.sampled_from(["none", "gru", "lstm"]),
    "policy.distribution": st.sampled_from(["auto", "categorical", "gaussian", "beta"]),
    "rollout.engine": st.sampled_from(["auto", "local", "native", "processes"]),
    "ppo.terms": st.fixed_dictionaries({"more": st.sampled_from(["entropy", "value"])}),
    "optimizer.transforms": st.fixed_dictionaries({"cap": st.just("clip_norm")}),
}
whole_keys = st.fixed_dictionaries({}, optional=STRATEGIES | WHOLE)


@given(whole_keys, whole_keys, whole_keys)
def test_later_layers_win_key_by_key(preset, file, line):
    config = build_config(preset, file, line)
    assert config == build_config({**preset, **file, **line})
    alone = [build_config(layer) for layer in ({}, preset, file, line)]
    for key in known_keys():
        says = max(i for i, layer in enumerate(({key: ...}, preset, file, line)) if key in layer)
        assert value_of(config, key) == value_of(alone[says], key)


@given(settings_by_key)
def test_dotted_keys_sections_and_bare_names_are_three_ways_to_say_it(settings):
    nested: dict = {}
    for key, value in settings.items():
        section, _, name = key.partition(".")
        nested.setdefault(section, {})[name] = value
    bare = {key.partition(".")[2]: value for key, value in settings.items()}
    assert merge(settings) == nested
    expected = build_config(settings)
    for way in (nested, by_name(bare), by_name(nested), by_name(settings)):
        assert build_config(way) == expected


@given(settings_by_key)
def test_merging_leaves_the_layers_alone(settings):
    layer = {"ppo": {"gamma": 0.5}}
    merge(layer, settings, {"ppo.gamma": 0.7})
    assert layer == {"ppo": {"gamma": 0.5}}
