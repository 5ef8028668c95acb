// Figures: drawn when they come near the screen, in the colours of the page.
"use strict";
const surefoot = (window.surefoot = { data: JSON.parse(document.getElementById("data").textContent), sources: {}, onDraw: {} });
(() => {
  const drawn = new Set();
  let printing = false;

  for (const [name, figure] of Object.entries(surefoot.data.figures)) surefoot.sources[name] = () => figure;

  surefoot.colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  function themed(layout, width) {
    const copy = structuredClone(layout), ink = printing ? "#000" : surefoot.colour("ink"), line = printing ? "#bbb" : surefoot.colour("line");
    copy.font = { color: ink, family: "system-ui, sans-serif", size: width < 480 ? 11 : 13 };
    copy.paper_bgcolor = copy.plot_bgcolor = "rgba(0,0,0,0)";
    for (const key of Object.keys(copy).filter((key) => /^[xy]axis/.test(key)).concat("xaxis", "yaxis")) {
      copy[key] = { gridcolor: line, zerolinecolor: line, linecolor: line, automargin: true, ...copy[key] };
      if (copy[key].overlaying) Object.assign(copy[key], { tickmode: "auto", showgrid: false, zeroline: false });
      if (width < 480) copy[key].fixedrange = true; // a finger scrolls the page, not the axis
    }
    copy.margin = { t: 30, b: 50, l: 55, r: 20, ...(width < 480 ? {} : copy.margin) };
    copy.legend = { ...copy.legend, orientation: "h", x: 0, y: 1.02, yanchor: "bottom", ...(width < 480 ? { font: { size: 10 } } : {}) };
    if (printing) Object.assign(copy, { width: 340, height: 290 }); // half of a sheet, which is narrower than the screen
    return copy;
  }

  const brighter = (data) => JSON.parse(JSON.stringify(data).replaceAll("#0072b2", "#3d9be0")); // blue that is seen on black

  function wake() { // plotly's script is long: it is read when the first figure is drawn, or when there is time
    const script = document.getElementById("plotly");
    if (window.Plotly || !script) return;
    document.body.append(Object.assign(document.createElement("script"), { textContent: script.textContent }));
    script.remove();
  }

  // one button above a figure, where the pointer is: save it as a drawing that scales
  const saving = (name) => ({ displaylogo: false, displayModeBar: "hover", modeBarButtons: [["toImage"]], toImageButtonOptions: { format: "svg", filename: name } });

  surefoot.draw = (name) => {
    const plot = document.getElementById(`figure-${name}`), source = surefoot.sources[name];
    if (!plot || !source) return;
    wake();
    const { data, layout } = source(), dark = !printing && getComputedStyle(document.documentElement).colorScheme === "dark";
    Plotly.react(plot, dark ? brighter(data) : data, themed(layout, printing ? 340 : plot.clientWidth), { responsive: true, ...saving(name) });
    drawn.add(name);
    plot.dataset.drawn = "true";
    surefoot.onDraw[name]?.();
  };
  surefoot.redraw = () => drawn.forEach((name) => surefoot.draw(name));
  surefoot.drawAll = () => document.querySelectorAll(".plot").forEach((plot) => surefoot.draw(plot.dataset.figure));

  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries.filter((entry) => entry.isIntersecting)) {
      watcher.unobserve(entry.target);
      surefoot.draw(entry.target.dataset.figure);
    }
  }, { rootMargin: "300px" });
  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll(".plot").forEach((plot) => watcher.observe(plot)));
  window.addEventListener("load", () => (window.requestIdleCallback ?? setTimeout)(wake));
  window.addEventListener("beforeprint", () => { printing = true; surefoot.drawAll(); });
  window.addEventListener("afterprint", () => { printing = false; surefoot.redraw(); });
})();
