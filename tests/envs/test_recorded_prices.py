"""Prices from a CSV file: read once, checked by line, replayed by both engines, and never seen before their time."""

import math
from pathlib import Path

import numpy as np
import pytest

from surefoot import PPO
from surefoot.envs import native
from surefoot.envs.make import make_vec_env
from surefoot.envs.tasks.market import Market
from surefoot.envs.tasks.recorded_prices import recorded_returns
from surefoot.envs.tasks.registration import register_envs
from surefoot.errors import EnvError, NativeError
from surefoot.settings.config import EnvConfig
from tests.parity.stepping import compare, random_actions

SHORT = {"horizon": 2, "window": 1}


@pytest.fixture(scope="module", autouse=True)
def _own_tasks() -> None:
    register_envs()


def written(folder: Path, text: str | bytes) -> str:
    file = folder / "prices.csv"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(file)


def random_prices(count: int, seed: int = 1) -> np.ndarray:
    return 100.0 * np.exp(np.cumsum(np.random.default_rng(seed).normal(0.0, 0.02, count)))


def table(prices: np.ndarray) -> str:
    lines = [f"2024-{day},{price!r},{day}" for day, price in enumerate(prices.tolist())]
    return "\n".join(["date,close,volume", *lines, ""])


def test_returns_are_logs_of_neighbors(tmp_path):
    prices = [100.0, 110.0, 99.0]
    expected = [math.log(110) - math.log(100), math.log(99) - math.log(110)]
    for text in ("day,close\nmon,100\n\ntue,110\nwed,99\n", '\ufeffclose\r\n"100"\r\n110\r\n 99.0 '):
        assert recorded_returns(written(tmp_path, text)) == tuple(expected)
    assert recorded_returns(written(tmp_path, table(np.array(prices))), "close") == tuple(expected)


def test_an_edited_file_is_read_again(tmp_path):
    assert len(recorded_returns(written(tmp_path, "p\n1\n2\n"))) == 1
    assert len(recorded_returns(written(tmp_path, "p\n1\n2\n3\n"))) == 2


@pytest.mark.parametrize("start", ["random", "first"])
def test_native_replays_what_the_reference_replays(tmp_path, start):
    path = written(tmp_path, table(random_prices(90)))
    kwargs = {"prices": path, "column": "close", "start": start, "horizon": 20, "window": 5, "turnover_cost": 0.01}
    assert compare("Market-v0", 2_000, random_actions, **kwargs) >= 100


@pytest.mark.parametrize("start", ["random", "first"])
def test_episodes_start_where_asked(tmp_path, start):
    prices = random_prices(9)
    envs = native.make("Market-v0", 64, prices=written(tmp_path, table(prices)), column="close", start=start, **SHORT)
    firsts = set(envs.reset(seed=1)[0][:, 0].tolist())
    returns = np.diff(np.log(prices)).astype(np.float32).tolist()
    assert firsts == set(returns[:6] if start == "random" else returns[:1]), "every place that leaves a whole horizon"


@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.parametrize("known", [0, 7, 18])
def test_nothing_is_seen_before_its_time(tmp_path, engine, known):
    """Other prices after time t change no observation and no reward up to t, and the next reward."""
    prices, other = random_prices(26), random_prices(26, seed=2)
    window, horizon = 5, 20
    other[: window + known + 1] = prices[: window + known + 1]
    seen = [played(engine, written(tmp_path, table(each)), window, horizon) for each in (prices, other)]
    (obs, rewards), (other_obs, other_rewards) = seen
    assert np.array_equal(obs[: known + 1], other_obs[: known + 1])
    assert rewards[:known] == other_rewards[:known]
    assert rewards[known] != other_rewards[known], "the test sees a change"


def played(engine: str, path: str, window: int, horizon: int) -> tuple[np.ndarray, list[float]]:
    kwargs = {"prices": path, "column": "close", "start": "first", "window": window, "horizon": horizon}
    env = native.make("Market-v0", 1, **kwargs) if engine == "native" else Market(**kwargs)
    obs, rewards, random = [env.reset(seed=3)[0].ravel()], [], np.random.default_rng(5)
    for _ in range(horizon):
        action = random.uniform(0.1, 1.0, 1).astype(np.float32)
        step = env.step(action[None] if engine == "native" else action)
        obs.append(step[0].ravel())
        rewards.append(float(np.asarray(step[1]).item()))
    return np.array(obs), rewards


GOOD = "day,close\na,100\nb,101\nc,102\n"


@pytest.mark.parametrize(
    ("text", "kwargs", "said"),
    [
        (GOOD + "d,-1\n", {}, "line 5: 'close' must be a finite number above 0, not '-1'"),
        (GOOD + "d,0\n", {}, "line 5: 'close' must be a finite number above 0, not '0'"),
        (GOOD + "d,nan\n", {}, "line 5: 'close' must be a finite number above 0, not 'nan'"),
        (GOOD + "d,1e999\n", {}, "line 5: 'close' must be a finite number above 0, not '1e999'"),
        (GOOD + '\nd,"1,5"\n', {}, "line 6: 'close' must be a finite number above 0, not '1,5'"),
        (GOOD + "d,\n", {}, "line 5: 'close' must be a finite number above 0, not ''"),
        (GOOD + "d\n", {}, "line 5 has 1 cells, but the header has 2"),
        (GOOD, {"column": "open"}, "has no column named 'open'; it has ['day', 'close']"),
        (GOOD, {"column": "day"}, "line 2: 'day' must be a finite number above 0, not 'a'"),
        (GOOD, {"column": 1}, "column must be the name of a column, not 1"),
        (GOOD, {"horizon": 3}, "there are 2 recorded returns, but window + horizon = 4 are needed"),
        (GOOD, {"process": "jump"}, "process has no effect on recorded returns; remove it"),
        ("a,a\n1,2\n3,4\n", {"column": "a"}, "has several columns named 'a'"),
        ("a,b\n1,2\n3,4\n", {}, "has several columns of numbers (['a', 'b']); set column to the name"),
        ("a,b\nx,y\n", {}, "has no column of numbers in line 2; set column to the name"),
        ("100\n101\n102\n", {}, "line 1 must be a header with the names of the columns, not numbers"),
        ("", {}, "has no prices; write a header and one price per line"),
        ("close\n", {}, "has no prices; write a header and one price per line"),
        (b"close\n\xff\xfe\n", {}, "cannot be read as a CSV file in UTF-8"),
        ('close\n"1\n', {}, "cannot be read as a CSV file in UTF-8: unexpected end of data"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(tmp_path, text, kwargs, said):
    path = written(tmp_path, text)
    with pytest.raises(EnvError) as refused:
        make_vec_env("Market-v0", EnvConfig(id="Market-v0", kwargs={"prices": path, **SHORT, **kwargs}), 2, 1)
    assert said in str(refused.value)
    assert path in str(refused.value) or "recorded" in said or "name of a column" in said
    assert "\n" not in str(refused.value)
    with pytest.raises(NativeError):
        native.make("Market-v0", prices=path, **SHORT | kwargs)


@pytest.mark.parametrize(
    ("prices", "said"),
    [
        ("no_such.csv", "prices: 'no_such.csv' is not a file; set prices to the path of a CSV file"),
        ("/", "prices: '/' is not a file"),
        ("/dev/zero", "prices: '/dev/zero' is not a file"),
        ("a\0b", "is not a file"),
        (3, "prices must be the path of a CSV file, not 3"),
    ],
)
def test_what_is_no_file_is_refused(prices, said):
    for make in (lambda: Market(prices=prices), lambda: native.make("Market-v0", prices=prices)):
        with pytest.raises(Exception, match="prices") as refused:
            make()
        assert said in str(refused.value)


def test_trains_and_is_evaluated_on_a_file(tmp_path):
    path = written(tmp_path, table(random_prices(400)))
    kwargs = {"prices": path, "column": "close", "horizon": 16}
    agent = PPO("Market-v0", kwargs=kwargs, num_envs=4, num_steps=32, batch_size=64, engine="native").learn(256)
    assert set(agent.evaluate(4).metrics) == {"win", "turnover", "bankrupt", "max_drawdown", "position"}
