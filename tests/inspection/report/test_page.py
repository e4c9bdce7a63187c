"""The page in a real browser: charts are drawn, switches work, nothing is loaded and nothing gets out."""

import re

import pytest
from PIL import Image

from surefoot.inspection.report.curves import SMOOTHING
from surefoot.inspection.report.page import report_page
from surefoot.inspection.report.traces import color_of
from surefoot.inspection.run_record import RunRecord
from tests.inspection.report.browser import probe, screenshot, unpacked, with_script
from tests.inspection.report.written_runs import records, write_evaluations, write_run

pytestmark = pytest.mark.xdist_group("browser")

LOOK_AROUND = """
  const plots = [...document.querySelectorAll(".plot")];
  const drawn = (plot) => plot.querySelectorAll(".trace path, .trace .point, .points path, .fills path").length;
  const look = {
    plots: plots.length,
    svgs: plots.filter((plot) => plot.querySelector(".main-svg")).length,
    empty: plots.filter((plot) => drawn(plot) === 0).map((plot) => plot.getAttribute("aria-label")),
    invalid: plots.flatMap((plot) => Plotly.validate(plot.data, plot.layout) || [])
      .filter((problem) => problem.code !== "unused").map((problem) => problem.msg),
    wider: document.documentElement.scrollWidth - window.innerWidth,
    headings: [...document.querySelectorAll("h2")].map((heading) => heading.textContent),
    text: document.body.innerText,
  };
"""
LATER_HEADINGS = ["Returns", "Diagnostics", "Timing", "Reproduce", "Settings"]
LOOK = LOOK_AROUND + "return look;"
SWITCH = """
  const learning = document.getElementById("chart-0");
  const click = async (selector) => {
    document.querySelector(selector).click();
    await new Promise((done) => setTimeout(done, 300));
  };
  const state = () => ({
    title: learning.layout.xaxis.title.text,
    last: learning.data[0].x.at(-1),
    mean: learning.data.filter((trace) => trace.line.width === 2)[0].y,
    lines: learning.querySelectorAll(".scatterlayer .trace").length,
    pressed: [...document.querySelectorAll("[aria-pressed=true]")].map((button) => button.textContent),
  });
  const before = state();
  await click("[data-axis=time]");
  const time = state();
  await click("[data-axis=steps]");
  await click("[data-smoothing=strong]");
  const strong = state();
  await click("[data-group='0']");
  const hidden = state();
  await Plotly.relayout(learning, { "xaxis.range[0]": 1000, "xaxis.range[1]": 2000 });
  await new Promise((done) => setTimeout(done, 300));
  const zoomed = [...document.querySelectorAll(".plot")].map((plot) => plot.layout.xaxis.range);
  await click("[data-smoothing=off]");
  const kept = [...document.querySelectorAll(".plot")].map((plot) => plot.layout.xaxis.range);
  await Plotly.relayout(learning, { "xaxis.autorange": true });
  await new Promise((done) => setTimeout(done, 300));
  const reset = [...document.querySelectorAll(".plot")].map((plot) => Math.round(plot.layout.xaxis.range[1]));
  return { ...look, before, time, strong, hidden, zoomed, kept, reset };
"""


def alerting(lines):
    for index in (3, 4, 10):
        lines[index]["warn/kl_high"] = 1.0
    return lines


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Three seeds, and a run with another learning rate and alerts."""
    folder = tmp_path_factory.mktemp("runs")
    local = {"rollout.engine": "local"}
    runs = [write_run(folder / f"seed{seed}", records(40, seed), local | {"train.seed": seed}) for seed in (1, 2, 3)]
    write_evaluations(runs[0].path, {7680: [5.0, 9.0, 7.0], 10240: [float(number) for number in range(60)]})
    return report_page([*runs, write_run(folder / "fast", alerting(records(40, 9)), local | {"optimizer.lr": 0.01})])


@pytest.fixture(scope="module")
def found(page, tmp_path_factory):
    """One visit: look at everything, then try the switches."""
    return probe(page, tmp_path_factory.mktemp("visit"), LOOK_AROUND + SWITCH)


def test_every_chart_is_drawn(found):
    assert found["problem"] == ""
    assert found["requests"] == []
    assert found["headings"] == ["Summary", "Learning", "Alerts", "Evaluation", *LATER_HEADINGS]
    # Return, alerts, evaluation, returns, 9 diagnostics (no std), phases of all, steps/s, phases of two groups.
    assert found["plots"] == found["svgs"] == 3 + 1 + 9 + 1 + 1 + 2
    assert found["empty"] == found["invalid"] == []
    assert found["wider"] <= 0


def test_switches_change_what_is_drawn(found):
    before, time, strong, hidden = (found[name] for name in ("before", "time", "strong", "hidden"))
    assert found["problem"] == ""
    assert (before["title"], before["last"]) == ("environment steps", 40 * 256)
    assert (time["title"], time["last"]) == ("training time (seconds)", 20)
    assert before["pressed"] == ["lr 0.0003 · 3 seeds", "lr 0.01", "light", "steps"]
    assert strong["pressed"] == ["lr 0.0003 · 3 seeds", "lr 0.01", "strong", "steps"]
    assert strong["mean"] != before["mean"]
    # Three raw lines, two edges of the band, the mean and the diamonds go; two lines and diamonds stay.
    assert (strong["lines"], hidden["lines"]) == (10, 3)
    assert found["zoomed"].count([1000, 2000]) == len(found["zoomed"]) - 2, "all but the returns and the bars by phase"
    assert found["kept"] == found["zoomed"]
    assert sorted(set(found["reset"])) == [62, 100, round(40 * 256 * 1.01)]


def test_the_picture_shows_it(page, tmp_path):
    picture = Image.open(screenshot(page, tmp_path, 1400, 2000)).convert("RGB")
    assert picture.size == (1400, 2000)
    colors = {color: count for count, color in picture.getcolors(maxcolors=2**24)}
    assert len(colors) > 100
    for group in (0, 1):
        red, green, blue = (int(color_of(group)[start : start + 2], 16) for start in (1, 3, 5))
        assert colors.get((red, green, blue), 0) > 500


def test_odd_runs_have_a_page(tmp_path):
    """On a phone. One record, two envs, no time, a metric that is missing in places: no chart is empty or too wide."""
    short = write_run(tmp_path / "short", records(1), {"env.id": "Pendulum-v1"})
    bare = write_run(tmp_path / "bare", [{"step": 7}, {"step": 9}])
    lines = records(12)
    for line in lines[::2]:
        del line["train/approx_kl"], line["rollout/ep_rew_mean"]
    for line in lines:
        del line["time/time_elapsed"]
    runs = [short, bare, write_run(tmp_path / "gaps", lines)]
    write_evaluations(tmp_path / "gaps", {2560: [0.5] * 7})
    write_evaluations(tmp_path / "short", {256: [-1234.5, 3.0]}, [0.0, None])
    found = probe(report_page(runs), tmp_path, LOOK, width=500)
    assert found["problem"] == ""
    assert found["empty"] == found["invalid"] == []
    assert found["plots"] == found["svgs"] > 10
    assert found["wider"] <= 0
    assert "No alert was raised." in found["text"]


def test_nothing_recorded_leaves_only_words(tmp_path):
    page = report_page([write_run(tmp_path / "bare", [{"step": 7}])])
    assert 'class="plot"' not in page
    assert "No episode has ended yet" in page
    assert "No evaluation was recorded." in page
    assert "<h2>Diagnostics</h2>" not in page
    assert "<h2>Timing</h2>" not in page


def test_what_files_say_is_never_run(tmp_path):
    evil = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    kept = ("step", "time/time_elapsed", "rollout/ep_rew_mean", "eval/mean_reward")
    lines = [{name: line[name] for name in kept if name in line} for line in records(12)]
    lines[3][f"warn/{evil}"] = 1.0
    folder = "<img src=x onerror=document.title='owned'>"
    runs = [write_run(tmp_path / folder, lines, {"env.id": evil}), write_run(tmp_path / "plain", lines)]
    script = "return { title: document.title, images: document.images.length, text: document.body.innerText };"
    found = probe(report_page(runs), tmp_path, script)
    assert found["problem"] == ""
    assert found["images"] == 0
    assert found["title"].startswith("</script><script>")
    assert "onerror" in found["text"]


def test_a_script_that_was_brought_in_does_not_run(tmp_path):
    page = report_page([write_run(tmp_path / "run", records(12))])
    assert "script-src 'sha256-" in page
    injected = "<script>document.title = 'owned'</script><b onclick=\"document.title = 'owned'\">click</b>"
    script = (
        "document.querySelector('b').click(); return { title: document.title, plots: document.body.dataset.drawn };"
    )
    found = probe(page.replace("<main>", "<main>" + injected), tmp_path, script)
    assert found["title"].startswith("CartPole-v1")
    assert "blocked by the content security policy: inline" in found["problem"]
    assert int(found["plots"]) > 3, "the page works in spite of it"


def test_the_page_says_so_when_something_is_loaded_or_breaks(tmp_path):
    """That the checks above can fail."""
    page = report_page([write_run(tmp_path / "bare", [{"step": 7}])])
    worse = page.replace("<main>", '<main><img src="http://example.invalid/spy.png">')
    problem = probe(with_script(worse, "nonsense()"), tmp_path, "return {};")["problem"]
    assert "blocked by the content security policy: http://example.invalid/spy.png" in problem
    assert "nonsense is not defined" in problem


def test_plotly_is_in_it_and_nothing_else_is_needed(page):
    assert unpacked(page, "plotly").count("* plotly.js v") == 1
    assert len(page.encode()) < 2.5e6
    own = re.sub(r'<script type="application/gzip".*?</script>', "", page)
    assert len(own) < 1e5
    assert not re.search(r"https?:|<link|@import|src=", own)


def test_an_old_browser_says_what_is_missing(page, tmp_path):
    old = with_script(page, "delete window.DecompressionStream; document.body.dataset.drawn = 1", "<main>")
    assert "the charts need a browser of 2023 or later" in probe(old, tmp_path, "await wait(); return {};")["problem"]


def test_twenty_long_runs_stay_small(tmp_path):
    long = write_run(tmp_path / "run", records(1500))
    runs = [RunRecord(tmp_path / str(gamma), {"ppo": {"gamma": gamma}}, long.records) for gamma in range(20)]
    page = report_page(runs)
    assert len(page.encode()) < 2.5e6 + 1.5e6
    assert "Long curves are downsampled to 1,000 points" in page
    assert "first 6 configurations" in page


def test_the_lead_says_what_was_run(page):
    lead = re.search(r'<p class="lead">(.*?)</p>', page)[1]
    assert lead.startswith("4 runs, 2 configurations · seeds 1, 2, 3 · 40,960 steps in total · engine local · 8 envs")
    assert "<h1>CartPole-v1</h1>" in page


def test_the_lead_names_the_engine_that_auto_chose(tmp_path):
    runs = [write_run(tmp_path / name, records(2)) for name in ("known", "own", "silent")]
    (tmp_path / "known" / "log.txt").write_text("x INFO rollouts: native on 2 threads\n")
    assert " · engine native · 8 envs" in report_page(runs[:1])
    (tmp_path / "own" / "log.txt").write_text("x INFO rollouts: step by step, local (there is no native 'A-v0')\n")
    assert " · engine native, local, auto · 8 envs" in report_page(runs)


def test_repeats_of_a_seed_are_not_called_seeds(tmp_path):
    runs = [write_run(tmp_path / name, records(2)) for name in ("first", "again")]
    assert ">CartPole-v1 · 2 runs</button>" in report_page(runs)


def test_smoothing_levels_have_their_buttons(page):
    assert re.findall(r'data-smoothing="(\w+)"', page) == list(SMOOTHING)
