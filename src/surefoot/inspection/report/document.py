"""A self-contained HTML page of sections, tables and charts."""

import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from string import Template

from surefoot.inspection.report.charts import Chart
from surefoot.inspection.report.traces import swatch_style

GENERATOR = "surefoot report"


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
        from plotly.offline import get_plotlyjs

        assets = resources.files(__package__).joinpath("assets")
        data = {"charts": {name: chart.to_json() for name, chart in self.charts.items()}, "axes": dict(axes)}
        # "<" could end the script element; its JSON escape cannot.
        embedded = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
        parts = {"title": escape(f"{heading} · Surefoot report"), "heading": escape(heading), "generator": GENERATOR}
        parts |= {"lead": lead, "controls": controls, "data": embedded}
        parts |= {"sections": "\n".join(self.sections), "plotly": get_plotlyjs()}
        parts |= {name: assets.joinpath(f"page.{name}").read_text(encoding="utf-8") for name in ("css", "js")}
        return Template(assets.joinpath("page.html").read_text(encoding="utf-8")).substitute(parts)
