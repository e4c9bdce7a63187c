"use strict";
(() => {
  const { charts, axes } = JSON.parse(document.getElementById("data").textContent);
  const chosen = { axis: "steps", smoothing: "light" };
  const hidden = new Set();
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const touch = window.matchMedia("(hover: none)").matches;
  const config = {
    responsive: true, displaylogo: false, displayModeBar: touch ? false : "hover",
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
  };

  // The chosen view and level become x and y; plotly is given nothing that it does not know.
  const traceOf = ({ views, levels, group, ...rest }) => ({
    ...rest, ...(views ? views[chosen.axis] : {}), ...(levels ? levels[chosen.smoothing] : {}),
    visible: group === undefined || !hidden.has(group),
  });

  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  const layoutOf = ({ ranges, layout }, small) => {
    const ink = color("--ink"), muted = color("--muted"), grid = color("--grid");
    const axis = { gridcolor: grid, linecolor: grid, zerolinecolor: color("--line"), tickfont: { color: muted, size: 11 } };
    const shared = ranges[chosen.axis];
    const x = shared
      ? { title: { text: axes[chosen.axis], standoff: 8 }, range: shared, tickformat: chosen.axis === "steps" ? "~s" : "",
          hoverformat: chosen.axis === "steps" ? ",d" : ",.1f" }
      : {};
    const titled = (given) => given && given.title ? { title: { font: { size: 12, color: muted }, ...given.title } } : {};
    const wanted = layout.xaxis || {};
    return {
      ...layout,
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: ink },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      margin: { l: small ? 48 : 62, r: 12, t: layout.legend ? 26 : 10, b: 44 },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: muted, activecolor: ink },
      hovermode: layout.hovermode || "x unified", dragmode: touch ? false : "zoom",
      hoverlabel: { bgcolor: color("--paper"), bordercolor: color("--line"), font: { color: ink, size: 12 } },
      xaxis: { ...axis, ...x, ...wanted, nticks: small ? 5 : 10, ...titled({ ...x, ...wanted }) },
      yaxis: { ...axis, hoverformat: ",.4~r", separatethousands: true, exponentformat: "SI", ...layout.yaxis, ...titled(layout.yaxis) },
    };
  };

  const draw = (name) => {
    const place = document.getElementById(name), chart = charts[name];
    const small = place.closest(".grid") !== null || place.clientWidth < 480;
    return Plotly.react(place, chart.traces.map(traceOf), layoutOf(chart, small), config);
  };
  const drawAll = () => Promise.all(Object.keys(charts).map(draw));

  // Zooming one chart zooms all that share its axis.
  let following = false;
  const follow = (name) => (change) => {
    const start = change["xaxis.range[0]"], stop = change["xaxis.range[1]"], reset = change["xaxis.autorange"];
    if (following || !charts[name].ranges.steps || (start === undefined && !reset)) return;
    following = true;
    const others = Object.keys(charts).filter((other) => charts[other].ranges.steps && (reset || other !== name));
    const update = (other) => ({ "xaxis.range": reset ? [...charts[other].ranges[chosen.axis]] : [start, stop] });
    Promise.all(others.map((other) => Plotly.relayout(other, update(other)))).finally(() => { following = false; });
  };

  const press = () => {
    for (const kind of Object.keys(chosen))
      for (const button of document.querySelectorAll(`[data-${kind}]`))
        button.setAttribute("aria-pressed", button.dataset[kind] === chosen[kind]);
    for (const chip of document.querySelectorAll(".chip"))
      chip.setAttribute("aria-pressed", !hidden.has(Number(chip.dataset.group)));
  };
  document.querySelector("nav").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const { group, axis, smoothing } = button.dataset;
    if (group !== undefined && !hidden.delete(Number(group))) hidden.add(Number(group));
    if (axis) chosen.axis = axis;
    if (smoothing) chosen.smoothing = smoothing;
    press();
    drawAll();
  });
  dark.addEventListener("change", drawAll);
  // Paper is light and has another width.
  for (const moment of ["beforeprint", "afterprint"]) window.addEventListener(moment, drawAll);

  press();
  drawAll().then(() => {
    for (const name of Object.keys(charts)) document.getElementById(name).on("plotly_relayout", follow(name));
    document.body.dataset.drawn = Object.keys(charts).length;
  });
})();
