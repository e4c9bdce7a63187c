"""`verify`: compares the native path with the readable one, or checks the protocol where there is no native path."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from torch import nn

from surefoot.envs.adapters.envpool import EnvPoolVector
from surefoot.envs.engines import Engine
from surefoot.envs.engines.native import NativeEngine
from surefoot.envs.make import ENVPOOL, PETTINGZOO, EnvSource
from surefoot.envs.native import may_be_native
from surefoot.errors import EnvError, NativeError
from surefoot.machine.torch_defaults import torch_threads
from surefoot.native import core
from surefoot.policies.actor_critic import EncoderFactory
from surefoot.policies.native_parts import NotNative
from surefoot.policies.native_plan import NativePlan, plan_policy
from surefoot.policies.policy import Policy
from surefoot.presets import configured
from surefoot.settings.config import Config
from surefoot.verification.contract import compare_alone, compare_engines
from surefoot.verification.legs import Traveler
from surefoot.verification.outputs import compare_policy, compare_ratio, core_to_env, synced
from surefoot.verification.plain import Plain
from surefoot.verification.protocol import check_protocol, maker
from surefoot.verification.report import Findings, Path, Report
from surefoot.verification.resuming import compare_elsewhere, compare_resumed, interrupted, new_process
from surefoot.verification.rollouts import (
    compare_machines,
    compare_others,
    compare_rollouts,
    compare_rows,
    compare_threads,
    endings,
)
from surefoot.verification.rounding import ROUNDING, slack
from surefoot.verification.subject import TIME_LIMITS, Subject
from surefoot.verification.updates import compare_learners

LEGS = 3
"""Number of rollouts compared, with an update after each, so that new weights and statistics must reach the core."""
ENOUGH_TRUNCATIONS = 8
NO_TWIN = "there is no Python twin beside the library; both paths step this env"


def verify(
    config: Config | str | None = None,
    env: EnvSource | None = None,
    policy: Policy | None = None,
    encoder: nn.Module | EncoderFactory | None = None,
) -> Report:
    """Compare the native path with the readable one; a custom env or policy is checked against the protocol instead.

    `config` is a config, a preset name or an env id; `env` is a custom env or a function that makes one; `policy` and
    `encoder` are as in `PPO`. The policy is copied; no run folder is read or written.
    """
    subject = Subject(_config(config), env, policy, _encoder(encoder))
    findings = Findings()
    with torch_threads(1):
        plan, reason = _plan(subject), ""
        path: Path = "native"
        if isinstance(plan, NotNative):
            path, reason = "stepwise", plan.reason
            findings.uncovered("native path", "against the readable", reason)
            _verify_stepwise(findings, subject)
        elif maker(subject) is None:
            path, reason = "library", NO_TWIN
            _verify_library(findings, subject, plan)
        else:
            _verify_native(findings, subject, plan)
    _name_what_is_off(findings, subject.config)
    return Report(_target(subject), path, reason, subject.config.train.seed, findings.components())


def _verify_native(findings: Findings, subject: Subject, plan: NativePlan) -> None:
    limits = sorted({subject.time_limit(limit) for limit in TIME_LIMITS}, reverse=True)
    limited = subject.sized(env__max_episode_steps=limits[0])
    with interrupted(limited, "native") as run, new_process(run) as process:  # it runs while the rest is compared
        for limit in limits:
            limited = subject.sized(env__max_episode_steps=limit)
            truncated = _compare_paths(findings, limited, plan)
            if truncated >= ENOUGH_TRUNCATIONS or limited.config.env.truncation_as_termination:
                break  # otherwise nearly all episodes ended before the limit
        compare_engines(findings, limited, "native", "local")
        compare_alone(findings, subject.config)
        compare_threads(findings, limited)
        compare_rows(findings, limited)
        if subject.config.rollout.engine.kind == "ray":
            compare_machines(findings, limited)
        compare_resumed(findings, run)
        compare_elsewhere(findings, run, process)


def _compare_paths(findings: Findings, subject: Subject, plan: NativePlan, engine: str = "local") -> int:
    """Compare both collectors and learners, and what they share with numpy; returns the number of truncated episodes.

    `engine` steps the envs of the readable collector.
    """
    config, legs, plain = subject.config, [], Plain(subject.config)
    with subject.opened("native") as fast_env, subject.opened(engine) as slow_env:
        fast = Traveler(config, fast_env, subject.new_policy(fast_env))
        slow = Traveler(config, slow_env, subject.new_policy(slow_env), is_readable=True)
        for leg in range(LEGS):
            ours = fast.go()
            core_policy = synced(plan.plain, ours)
            reference = slow.follow(ours, core_to_env(core_policy, ours.policy.head))
            compare_policy(findings, ours, core_policy, config.train.seed)
            compare_rollouts(findings, ours, reference)
            compare_learners(findings, fast, ours, reference, config, leg)
            compare_ratio(findings, ours, config.ppo)
            plain.compare(findings, reference)
            legs.append(ours)
    if all(component.verdict != "DIFFERS" for component in findings.components()):  # else it would show the same again
        compare_others(findings, subject, plan, ROUNDING * slack(legs[-1]), engine)
    terminated, truncated = endings(legs)
    what = f"endings, limit {config.env.max_episode_steps} steps"
    findings.fine("flags", what, f"{terminated} terminated, {truncated} truncated")
    return truncated


def _verify_library(findings: Findings, subject: Subject, plan: NativePlan) -> None:
    """A native env without a reference: it steps for both collectors, and has to keep the protocol."""
    sized = subject.sized(env__max_episode_steps=subject.time_limit(TIME_LIMITS[0]))
    _compare_paths(findings, sized, plan, engine="native")
    for name in ("env dynamics", "rewards", "flags"):
        findings.uncovered(name, "of the env itself", NO_TWIN)
    check_protocol(findings, sized, "native")
    compare_threads(findings, sized)
    compare_rows(findings, sized)


def _verify_stepwise(findings: Findings, subject: Subject) -> None:
    is_gymnasium = subject.source is None and not subject.config.env.id.startswith((ENVPOOL, PETTINGZOO))
    sized = (
        subject.sized(env__max_episode_steps=subject.time_limit(TIME_LIMITS[0])) if is_gymnasium else subject.sized()
    )
    is_native = _is_native(sized)
    check_protocol(findings, sized, "native" if is_native else "local")
    if is_native:
        compare_engines(findings, sized, "native", "local")
        compare_alone(findings, subject.config)


def _name_what_is_off(findings: Findings, config: Config) -> None:
    """Settings that are changed here, so that both paths take the same steps on the same device."""
    if config.ppo.target_kl is not None:
        findings.uncovered("early stopping", "at ppo.target_kl", "verify always runs all epochs")
    if config.train.device not in ("auto", "cpu"):
        findings.uncovered("device", f"train.device {config.train.device}", "verify compares on the CPU")


def _plan(subject: Subject) -> NativePlan | NotNative:
    """The native plan of the policy if the core can run it and the env, otherwise the reason why it cannot."""
    _refuse_what_cannot_be_made(subject)
    try:
        with subject.sized().opened("native") as env:
            if isinstance(env, NativeEngine):
                return plan_policy(subject.new_policy(env))
            reason = env.why_not_native if isinstance(env, Engine) else ""
            return NotNative(reason or "these envs are stepped by a library outside Surefoot")
    except EnvError as error:
        return NotNative(f"the env breaks its contract: {error}")


def _refuse_what_cannot_be_made(subject: Subject) -> None:
    """Raise the error of an env that cannot be made, or of a core that cannot be loaded though it is needed."""
    env = subject.config.env
    if subject.source is None and env.id.startswith(ENVPOOL):
        EnvPoolVector(env.id.removeprefix(ENVPOOL), env, 1)
    make: Callable[[], Any] | None = maker(subject)
    if make is not None and not subject.is_fixed:
        make().close()
    if subject.source is None and may_be_native(env.id):
        try:
            core()
        except NativeError as error:
            raise NativeError(f"the native path of '{env.id}' could not be compared: {error}") from error


def _is_native(subject: Subject) -> bool:
    try:
        with subject.opened("native") as env:
            return isinstance(env, NativeEngine)
    except EnvError:
        return False


def _config(config: Config | str | None) -> Config:
    if isinstance(config, str):
        return configured(config).config
    return config or Config()


def _encoder(encoder: nn.Module | EncoderFactory | None) -> EncoderFactory | None:
    """A factory; a module is copied, because actor and critic each need a separate encoder."""
    if isinstance(encoder, nn.Module):
        module = encoder
        return lambda spec: deepcopy(module)
    return encoder


def _target(subject: Subject) -> str:
    source = subject.source
    if source is None or isinstance(source, str):
        return source or subject.config.env.id
    return getattr(source, "__name__", type(source).__name__)
