"use strict";
(async () => {
  // The text of an element that holds gzip in base64.
  const unpacked = (id) => {
    if (!window.DecompressionStream) throw new Error("the charts need a browser of 2023 or later");
    const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (character) => character.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  };

  // An inline script: a content security policy can allow it by the hash of its text.
  const library = document.createElement("script");
  library.textContent = await unpacked("plotly");
  document.head.append(library);
  const { charts, axes } = JSON.parse(await unpacked("data"));
  const chosen = { axis: "steps", smoothing: "light" };
  const hidden = new Set();
  let printing = false, zoom = null;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const touch = window.matchMedia("(hover: none)").matches;
  const config = {
    responsive: true, displaylogo: false, displayModeBar: touch ? false : "hover",
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
  };

  // The selected view and level become x and y; custom fields are removed before Plotly sees them.
  const traceOf = ({ views, levels, group, ...rest }) => ({
    ...rest, ...(views ? views[chosen.axis] : {}), ...(levels ? levels[chosen.smoothing] : {}),
    visible: group === undefined || !hidden.has(group),
  });

  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // The shared axis with the current zoom; some charts have a separate axis.
  const xAxis = (range) => {
    if (!range) return {};
    const steps = chosen.axis === "steps";
    return {
      title: { text: axes[chosen.axis], standoff: 8 }, range: zoom && zoom.end === range[1] ? [...zoom.range] : range,
      tickformat: steps ? "~s" : "", hoverformat: steps ? ",d" : ",.1f",
    };
  };

  const layoutOf = (chart, small) => {
    // Plotly modifies its arguments; a copy keeps the original for the next draw.
    const { ranges, layout } = structuredClone({ ranges: chart.ranges, layout: chart.layout });
    const family = getComputedStyle(document.body).fontFamily;
    const ink = color("--ink"), muted = color("--muted"), grid = color("--grid"), line = color("--line");
    const axis = (own) => ({
      gridcolor: grid, linecolor: grid, zerolinecolor: line, tickfont: { color: muted, size: 11 }, ...own,
      ...(own.title ? { title: { font: { size: 12, color: muted }, ...own.title } } : {}),
    });
    return {
      ...layout,
      font: { family, size: 12, color: ink },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      margin: { l: small ? 48 : 62, r: 12, t: layout.legend ? 26 : 10, b: 44 },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: muted, activecolor: ink },
      hovermode: layout.hovermode || "x unified", dragmode: touch ? false : "zoom",
      hoverlabel: {
        bgcolor: color("--paper"), bordercolor: line, font: { family, color: ink, size: 12 }, align: "left", namelength: -1,
      },
      xaxis: axis({ nticks: small ? 5 : 10, ...xAxis(ranges[chosen.axis]), ...layout.xaxis }),
      yaxis: axis({ hoverformat: ",.4~r", separatethousands: true, exponentformat: "e", ...layout.yaxis }),
    };
  };

  const draw = (name) => {
    const place = document.getElementById(name), chart = charts[name];
    const small = place.closest(".grid") !== null || place.clientWidth < 480;
    // Plotly follows the width of the window, but paper has a different width.
    const layout = { ...layoutOf(chart, small), ...(printing ? { width: place.clientWidth } : {}) };
    return Plotly.react(place, chart.traces.map(traceOf), layout, config);
  };
  const drawAll = () => Promise.all(Object.keys(charts).map(draw));

  // Zooming one chart zooms all charts that share its axis: those of the same env.
  let following = false;
  const end = (name) => (charts[name].ranges[chosen.axis] || [])[1];
  const follow = (name) => (change) => {
    const start = change["xaxis.range[0]"], stop = change["xaxis.range[1]"], reset = change["xaxis.autorange"];
    if (following || end(name) === undefined || (start === undefined && !reset)) return;
    following = true;
    zoom = reset ? null : { end: end(name), range: [start, stop] };
    const others = Object.keys(charts).filter((other) => end(other) === end(name) && (reset || other !== name));
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
    if (axis && axis !== chosen.axis) [chosen.axis, zoom] = [axis, null];
    if (smoothing) chosen.smoothing = smoothing;
    press();
    drawAll();
  });
  dark.addEventListener("change", drawAll);
  for (const moment of ["beforeprint", "afterprint"])
    window.addEventListener(moment, () => {
      printing = moment === "beforeprint";
      document.documentElement.classList.toggle("printing", printing);
      drawAll();
    });

  press();
  drawAll().then(() => {
    for (const name of Object.keys(charts)) document.getElementById(name).on("plotly_relayout", follow(name));
    document.body.dataset.drawn = Object.keys(charts).length;
  });
})();
