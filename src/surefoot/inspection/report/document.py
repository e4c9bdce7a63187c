"""A self-contained HTML page of sections, tables and charts."""

import gzip
import hashlib
import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib import resources
from string import Template

from surefoot.inspection.report.charts import Chart
from surefoot.inspection.report.traces import swatch_style

GENERATOR = "surefoot report"
_SCRIPTS = re.compile("<script>(.*?)</script>", re.DOTALL)


class Document:
    """Collects sections and the charts in them."""

    def __init__(self) -> None:
        self.charts: dict[str, Chart] = {}
        self.sections: list[str] = []

    def add(self, title: str, content: str, note: str = "") -> None:
        """Add a section, unless it is empty."""
        if content:
            lead = f"<p class='note'>{note}</p>" if note else ""
            self.sections.append(f"<section><h2>{escape(title)}</h2>{lead}{content}</section>")

    def figure(self, chart: Chart | None) -> str:
        """The placeholder in which the script draws the chart."""
        if chart is None:
            return ""
        name = f"chart-{len(self.charts)}"
        self.charts[name] = chart
        dot = "" if chart.group is None else f'<i class="swatch" style="{swatch_style(chart.group)}"></i>'
        note = f"<small>{dot}{escape(chart.note)}</small>" if chart.note else ""
        caption = "" if chart.is_alone else f"<figcaption>{escape(chart.title)}{note}</figcaption>"
        plot = (
            f'<div class="plot" id="{name}" style="height:{chart.height}px" aria-label="{escape(chart.title)}"></div>'
        )
        return f"<figure>{caption}{plot}</figure>"

    def small_figures(self, charts: Sequence[Chart]) -> str:
        """Small charts in a grid."""
        return f'<div class="grid">{"".join(self.figure(chart) for chart in charts)}</div>' if charts else ""

    def html(self, heading: str, lead: str, controls: str, axes: Mapping[str, str]) -> str:
        """The page: it needs no network and no other files. `lead` and `controls` are HTML, `axes` titles of x axes."""
        assets = resources.files(__package__).joinpath("assets")
        data = {"charts": {name: chart.to_json() for name, chart in self.charts.items()}, "axes": dict(axes)}
        embedded = _packed(json.dumps(data, separators=(",", ":"), allow_nan=False))
        content = {"title": escape(f"{heading} · Surefoot report"), "heading": escape(heading), "generator": GENERATOR}
        content |= {"lead": lead, "controls": controls, "data": embedded}
        content |= {"sections": "\n".join(self.sections), "plotly": _packed_plotly()}
        content |= {name: assets.joinpath(f"page.{name}").read_text(encoding="utf-8") for name in ("css", "js")}
        template = assets.joinpath("page.html").read_text(encoding="utf-8")
        # Of the template, not of the page: a script that a text has brought in has no hash here and does not run.
        scripts = [Template(script).substitute(content) for script in _SCRIPTS.findall(template)]
        content["scripts"] = " ".join(map(script_hash, [*scripts, _plotly()]))
        page = Template(template).substitute(content)
        return page.encode(errors="replace").decode()  # names of files may have bytes that are not UTF-8


def headed(contents: Mapping[str, str]) -> str:
    """The same content per env, under its name if there are several."""
    if len(contents) == 1:
        return next(iter(contents.values()))
    return "".join(f"<h3>{escape(env)}</h3>{content}" for env, content in contents.items() if content)


def script_hash(script: str) -> str:
    """What allows an inline script in a content security policy."""
    return f"'sha256-{b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _packed(text: str) -> str:
    """Text as gzip in base64: the script unpacks it in the browser. The same text always gives the same page."""
    return b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


@cache
def _packed_plotly() -> str:
    return _packed(_plotly())
