// The slider: bins at every temperature or feature scale are in the page, so each step is exact.
(() => {
  const sliders = surefoot.data.sliders, input = document.getElementById("slider"), picker = document.getElementById("slider-model");
  const NAMES = { temperatures: "temperature", feature_scales: "feature scale" };
  const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const nearest = (values, wanted) => values.reduce((best, value, k) => (Math.abs(Math.log(value / wanted)) < Math.abs(Math.log(values[best] / wanted)) ? k : best), 0);
  const states = sliders.map((slider) => ({ kind: "temperatures", step: nearest(slider.grids.temperatures.values, 1) }));
  const current = () => (picker ? Number(picker.value) : 0);
  const grid = (k) => sliders[k].grids[states[k].kind];
  const percent = (value) => (value === null ? "–" : `${(100 * value).toFixed(2)} %`);

  function wilson(correct, count) { // 95 % interval of a share
    const z = 1.959964, share = correct / count, whole = 1 + (z * z) / count;
    const centre = (share + (z * z) / (2 * count)) / whole, half = (z / whole) * Math.sqrt((share * (1 - share)) / count + (z * z) / (4 * count * count));
    return [share, Math.min(centre - half, share), Math.max(centre + half, share)];
  }

  function bins(k) {
    const own = grid(k), step = states[k].step, counts = own.counts[step], total = counts.reduce((sum, count) => sum + count, 0);
    return counts.map((count, bin) => ({ bin, count, share: count / total, confidence: own.confidences[step][bin] / count, accuracy: wilson(own.correct[step][bin], count) })).filter((row) => row.count);
  }

  surefoot.sources.reliability = () => {
    const line = { color: "#888", dash: "dash", width: 1 };
    const data = [{ x: [0, 1], y: [0, 1], mode: "lines", line, name: "perfect calibration", hoverinfo: "skip" }];
    sliders.forEach((slider, k) => {
      const rows = bins(k), width = grid(k).counts[0].length, name = escaped(slider.name);
      data.push({
        x: rows.map((row) => row.confidence), y: rows.map((row) => row.accuracy[0]), name, mode: "markers", cliponaxis: false,
        marker: { color: slider.colour, size: 12, opacity: rows.map((row) => 0.35 + 0.65 * Math.sqrt(row.share)) },
        error_y: { array: rows.map((row) => row.accuracy[2] - row.accuracy[0]), arrayminus: rows.map((row) => row.accuracy[0] - row.accuracy[1]), thickness: 1, width: 3 },
        hovertemplate: "confidence %{x:.3f}<br>accuracy %{y:.3f}",
      });
      data.push({
        x: rows.map((row) => (row.bin + 0.5) / width), y: rows.map((row) => row.share), type: "bar", yaxis: "y2", name: `${name}: share of images`,
        marker: { color: slider.colour }, opacity: 0.6, showlegend: false, hovertemplate: "%{y:.1%} of the images",
      });
    });
    const axis = { range: [0, 1.02], tickformat: ".0%" };
    return { data, layout: { xaxis: { ...axis, anchor: "y2", title: { text: "confidence" } }, yaxis: { ...axis, domain: [0.24, 1], title: { text: "accuracy" } }, yaxis2: { domain: [0, 0.17], tickformat: ".0%", nticks: 3, title: { text: "images" } }, barmode: "group" } };
  };

  surefoot.sources.sweep = () => {
    const data = [];
    sliders.forEach((slider, k) => {
      const own = grid(k), step = states[k].step, name = escaped(slider.name);
      const add = (key, title, dash, yaxis) => {
        data.push({ x: own.values, y: own[key], mode: "lines", name: `${sliders.length > 1 ? `${name}, ` : ""}${title}`, line: { color: slider.colour, dash, width: 2 }, yaxis });
        data.push({ x: [own.values[step]], y: [own[key][step]], mode: "markers", name: `${name}, ${title} now`, marker: { symbol: "diamond", size: 12, color: slider.colour }, showlegend: false, yaxis });
      };
      add("ece", "ECE", "solid", "y");
      add("nll", "NLL", "dot", "y2");
    });
    const title = [...new Set(states.map((state) => NAMES[state.kind]))].join(" or "); // each model has its own slider
    return { data, layout: { xaxis: { type: "log", title: { text: title }, tickvals: [0.125, 0.25, 0.5, 1, 2, 4, 8] }, yaxis: { title: { text: "ECE" }, tickformat: ".0%", rangemode: "tozero" }, yaxis2: { title: { text: "NLL" }, overlaying: "y", side: "right", rangemode: "tozero", showgrid: false }, margin: { l: 55, r: 55, t: 30, b: 50 } } };
  };

  function marks() {
    const k = current(), values = grid(k).values, holder = document.getElementById("slider-marks");
    const wanted = [[1, "as it is"]];
    if (states[k].kind === "temperatures") for (const value of sliders[k].fitted) wanted.push([value, `fitted ${value.toFixed(2)}`]);
    holder.replaceChildren(...(values.length < 2 ? [] : wanted).map(([value, text]) => {
      const step = nearest(values, value), mark = Object.assign(document.createElement("button"), { type: "button", textContent: text });
      mark.dataset.step = step;
      mark.style.left = `calc(8px + (100% - 16px) * ${step / (values.length - 1)})`;
      mark.addEventListener("click", () => { states[k].step = step; update(); });
      return mark;
    }));
    const buttons = [...holder.children], crowded = buttons.some((a, i) => buttons.slice(i + 1).some((b) => Math.abs(a.offsetLeft - b.offsetLeft) < (a.offsetWidth + b.offsetWidth) / 2 + 6));
    buttons.forEach((mark, i) => { // below each other where they would cover each other
      mark.style.setProperty("--lane", `${crowded ? 1.8 * (buttons.length - 1 - i) : 0}rem`);
      mark.style.setProperty("--reach", `${0.6 + (crowded ? 1.8 * i : 0)}rem`);
    });
    holder.parentElement.style.paddingBottom = buttons.length ? `${crowded ? 0.3 + 1.8 * buttons.length : 2.1}rem` : "0";
  }

  function update() {
    const k = current(), own = grid(k), step = states[k].step, kind = NAMES[states[k].kind];
    Object.assign(input, { max: own.values.length - 1, value: step });
    document.getElementById("slider-name").textContent = kind;
    document.getElementById("slider-value").textContent = own.values[step].toFixed(2);
    input.setAttribute("aria-valuetext", `${kind} ${own.values[step].toFixed(2)}, ECE ${percent(own.ece[step])}`);
    sliders.forEach((slider, j) => {
      const each = grid(j), at = states[j].step;
      const output = document.getElementById(`at-${j}`);
      if (output) output.textContent = `${NAMES[states[j].kind]} ${each.values[at].toFixed(2)}`;
      document.getElementById(`ece-${j}`).textContent = percent(each.ece[at]);
      document.getElementById(`nll-${j}`).textContent = each.nll[at] === null ? "–" : each.nll[at].toFixed(4);
    });
    for (const name of ["reliability", "sweep"]) if (document.getElementById(`figure-${name}`).dataset.drawn) surefoot.draw(name);
  }

  input.addEventListener("input", () => { states[current()].step = Number(input.value); update(); });
  picker?.addEventListener("change", () => { choose(); });
  function choose() {
    const state = states[current()];
    for (const radio of document.querySelectorAll("#slider-kind input")) {
      radio.disabled = !(radio.value in sliders[current()].grids);
      radio.checked = radio.value === state.kind;
    }
    marks();
    update();
  }
  document.getElementById("slider-kind")?.addEventListener("change", (event) => {
    const state = states[current()];
    state.kind = event.target.value;
    state.step = nearest(grid(current()).values, 1);
    choose();
  });
  window.addEventListener("resize", marks);
  choose();
})();
