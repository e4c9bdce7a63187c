"""The first hour of a new user, in order."""

from tests.newcomer.step import Step, readme

FEW = "--train.eval_episodes 2"
EXTRAS = "surefoot[box2d,envpool,onnx,pettingzoo,sweep,video]"

INSTALL = [
    readme("python3 -m venv venv", in_clone=True, only_new_venv=True),
    readme("venv/bin/pip install --constraint constraints.txt .", in_clone=True, only_new_venv=True),
    readme("venv/bin/surefoot train CartPole-v1", in_clone=True, only_new_venv=True, prints=("evaluated", "next")),
    Step(
        "an extra that is missing is named",
        "surefoot export {clone}/runs/CartPole-v1 --onnx policy.onnx",
        code=2,
        prints=("pip install 'surefoot[onnx]'",),
        only_new_venv=True,
    ),
    Step(
        "install extras",
        f"venv/bin/pip install --constraint constraints.txt '{EXTRAS}' minigrid",
        in_clone=True,
        only_new_venv=True,
    ),
]

TRAIN = [
    readme("surefoot train HalfCheetah-v5", f"--steps 2048 {FEW} --run-dir runs/cheetah", prints=("HalfCheetah-v5",)),
    readme(
        "surefoot train CartPole-v1 --steps 50000 --seed 3 --optimizer.lr 1e-3 --policy.hidden 64 64",
        prints=("preset    CartPole-v1", "evaluated"),
    ),
    readme("surefoot train --config my_run.yaml --run-dir runs/mine", prints=("preset    CartPole-v1",)),
    readme("surefoot resume runs/mine --steps 2000000", instead=(("2000000", "16384"),), prints=("trained 16,384",)),
    Step(
        "continue from a checkpoint in another directory",
        "surefoot resume runs/mine --checkpoint 16384 --run-dir runs/again --steps 20480",
        prints=("resuming runs/mine from step_000000016384.safetensors in runs/again", "trained 20,480"),
    ),
    Step("typed: the next command of a run", r"surefoot report runs/mine\b", typed_from="surefoot resume"),
    readme(
        "surefoot train CartPole-v1 --seeds 1-5",
        "--steps 8192",
        instead=(("1-5", "1-2"),),
        prints=("seeds     2", "next"),
        writes=("runs/CartPole-v1-seeds/report.html",),
    ),
    Step("typed: the next command of several seeds", r"surefoot compare runs/\S+", typed_from="--seeds 1-5"),
    Step(
        "more seeds, to compare",
        "surefoot train CartPole-v1 --seeds 1,2 --steps 8192 --optimizer.lr 1e-4 --run-dir runs/slow-seeds",
    ),
    readme(
        "surefoot compare runs/a-seeds runs/b-seeds",
        instead=(("runs/a-seeds", "runs/CartPole-v1-seeds"), ("runs/b-seeds", "runs/slow-seeds")),
        prints=("IQM", "Probability"),
        writes=("compare.html",),
    ),
    readme("surefoot population my_population.yaml", prints=("winner",)),
    readme("surefoot sweep my_sweep.yaml", prints=("best      trial",)),
    Step(
        "a preset of a sweep",
        "surefoot sweep recurrent --train.steps 1024 --train.eval_every 512 --sweep.trials 2 --sweep.seeds 1"
        " --sweep.finalists 0 --sweep.episodes 2",
        prints=("best      trial", "rollout.sequence_length"),
    ),
    readme(
        "torchrun --nproc-per-node 2 --no-python surefoot train cheetah-minute",
        f"--steps 4096 {FEW}",
        prints=("processes 2",),
    ),
    readme(
        "surefoot train Ant-v5 --rollout.num_envs 64 --rollout.num_steps 64 --ppo.batch_size 1024",
        f"--steps 4096 {FEW}",
        prints=("native",),
    ),
    readme("surefoot train CartPoleNoVel-v1 --policy.memory gru", "--steps 4096"),
    readme("surefoot train CartPole-v1 --schedules.lr cosine --hooks.stop_at_return.value 475", "--steps 8192"),
    Step(
        "less noise", f"surefoot train Pendulum-v1 --hooks.fade_noise.end 0.1 --steps 4096 {FEW}", prints=("evaluated",)
    ),
    readme("surefoot train CartPole-v1 --policy.critic my_parts:MyCritic", "--steps 4096", prints=("evaluated",)),
    readme("surefoot train envpool:CartPole-v1", "--steps 4096", prints=("evaluated",)),
]

ZOO = [
    readme("surefoot evaluate zoo:Pendulum-v1", prints=("mean reward",)),
    readme(
        "surefoot train Pendulum-v1 --from zoo:Pendulum-v1 --optimizer.lr 1e-4",
        "--steps 4096",
        prints=("from      zoo:",),
    ),
    Step(
        "keep the actor's hidden layers",
        "surefoot train Pendulum-v1 --from zoo:Pendulum-v1 --optimizer.frozen actor_body --steps 4096",
        prints=("from      zoo:",),
    ),
    Step("a policy of the zoo", "surefoot evaluate zoo:CartPole-v1", prints=("mean reward     500.00",)),
    Step("watch a policy of the zoo", "surefoot watch zoo:CartPole-v1 --video videos/zoo-cartpole.gif --max-steps 100"),
]

LOOK = [
    readme("surefoot evaluate runs/mine --episodes 100", prints=("mean reward", "CVaR")),
    Step("sampled actions, as doctor advises", "surefoot evaluate runs/mine --stochastic", prints=("mean reward",)),
    readme("surefoot evaluate runs/mine --attack pgd --epsilon 0.1", "--episodes 5", prints=("pgd",)),
    Step(
        "figures over a grid",
        "surefoot evaluate zoo:Pendulum-v1 --over g=5,10,15 --episodes 5 --heat-map pages/gravity.png",
        prints=("mean_reward, 5 episodes per cell", "g=10"),
        writes=("pages/gravity.png",),
    ),
    readme("surefoot doctor runs/mine", "|| test $? -eq 1", prints=("CartPole-v1",)),
    readme(
        "surefoot report runs/mine runs/other",
        "--output pages/two-runs.html",
        instead=(("runs/other", "runs/CartPole-v1-seeds"),),
        writes=("pages/two-runs.html",),
    ),
    readme("surefoot export runs/mine --onnx policy.onnx", writes=("policy.onnx",)),
    readme("surefoot verify Ant-v5", instead=(("Ant-v5", "CartPole-v1"),), prints=("CartPole-v1",)),
    readme("surefoot presets", prints=("LunarLander-v3",)),
    readme("surefoot envs --filter cheetah", prints=("HalfCheetah-v5",)),
    readme("surefoot native new my_env", writes=("my_env.cpp",)),
    Step("build it", "surefoot native build my_env.cpp"),
    Step("typed: train it", r"surefoot train \./my_env\.so.*", typed_from="build it"),
    Step("a robot", "surefoot native new my_robot --mujoco", writes=("my_robot.cpp", "my_robot.xml")),
    Step("typed: build it", r"surefoot native build my_robot\.cpp", typed_from="a robot"),
    Step("verify the robot", "surefoot verify ./my_robot.so", prints=("./my_robot.so",)),
    Step("train the robot", f"surefoot train ./my_robot.so --steps 8192 {FEW}", prints=("native",)),
    Step(
        "tasks of Surefoot in Gymnasium",
        "python -c \"import surefoot, gymnasium as gym; print(gym.make_vec('Market-v0', num_envs=4))\"",
        prints=("NativeVectorEnv",),
    ),
    Step("build an arm", "cp {clone}/docs/extend/examples/arm.* . && rm arm.py && surefoot native build arm.cpp"),
    Step("train it", f"surefoot train ./arm.so --steps 4096 {FEW} --run-dir runs/arm"),
    Step("a robot of EnvPool", f"surefoot train envpool:Hopper-v4 --steps 4096 {FEW} --run-dir runs/pool"),
]

EXAMPLES = [
    Step(f"example {name}", f"python {{clone}}/examples/{name}.py {steps}")
    for name, steps in {
        "own_env": 4096,
        "own_policy": 4096,
        "recurrent": 4096,
        "multi_agent": 4800,
        "masks": 4608,
        "hybrid_actions": 4096,
        "seeds": 2048,
        "ported/from_sb3": 4096,
        "ported/from_cleanrl": 2048,
        "ported/from_rsl_rl": 1536,
    }.items()
]

LEFT_OUT = "left out of the observation"
OWN_TASKS = [
    Step(
        "LunarLander by id", f"surefoot train LunarLander-v3 --steps 16384 {FEW}", prints=("preset    LunarLander-v3",)
    ),
    Step("MiniGrid without its prefix", "surefoot train MiniGrid-Empty-5x5-v0", code=2, prints=("minigrid:MiniGrid",)),
    Step(
        "MiniGrid by id",
        f"surefoot train minigrid:MiniGrid-Empty-5x5-v0 --steps 2048 {FEW} --run-dir runs/minigrid",
        prints=("mission", LEFT_OUT),
    ),
    Step(
        "a Dict with an image",
        f"surefoot train my_envs:Orchard-v0 --steps 4096 {FEW} --run-dir runs/orchard",
        prints=("advice", LEFT_OUT),
    ),
    Step("action masks", f"surefoot train my_envs:Lamps-v0 --steps 8192 {FEW} --run-dir runs/lamps"),
    Step("objects of Python", "python advice.py", prints=("PPO.load('runs/object', env=YOUR_ENV)",)),
]

STOP = [
    Step(
        "Ctrl-C",
        "surefoot train CartPole-v1 --steps 3e7 --run-dir runs/long --log.console plain",
        code=130,
        interrupt_at="fps",
        prints=("stopped at step", "surefoot resume runs/long"),
    ),
    Step("typed: resume", r"surefoot resume runs/long\b", typed_from="Ctrl-C", code=130, interrupt_at="fps"),
    Step("resume to a nearer end", "surefoot resume runs/long --steps 1000", code=2, prints=("--steps",)),
    Step("evaluate what was stopped", "surefoot evaluate runs/long --episodes 3", prints=("mean reward",)),
]

VIDEOS = [
    Step(
        f"video of {name}",
        f"surefoot watch {run} --video videos/{name}.mp4 --max-steps {options}",
        prints=("video",),
        writes=(f"videos/{name}.mp4",),
    )
    for name, run, options in (
        ("cartpole", "runs/mine", "200"),
        ("lunarlander", "runs/LunarLander-v3", "150"),
        ("minigrid", "runs/minigrid", "30 --sampled"),
        ("orchard", "runs/orchard", "80"),
        ("lamps", "runs/lamps", "10"),
        ("cheetah", "runs/cheetah", "60"),
        ("arm", "runs/arm", "50"),
        ("pool", "runs/pool", "20"),
    )
]

PAGES = [
    Step("frames of the videos", "python frames.py videos pages"),
    Step("report of LunarLander", "surefoot report runs/LunarLander-v3 --output pages/lunarlander.html"),
    Step(
        "screenshots",
        "python screenshots.py pages compare.html runs/mine/report.html runs/CartPole-v1-seeds/report.html",
    ),
]

STEPS = [*INSTALL, *TRAIN, *ZOO, *LOOK, *EXAMPLES, *OWN_TASKS, *STOP, *VIDEOS, *PAGES]
