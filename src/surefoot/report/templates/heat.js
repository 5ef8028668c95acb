// The heat map of corruptions, and the pictures behind each cell.
(() => {
  const table = document.getElementById("heat");
  if (!table) return;
  const picker = document.getElementById("heat-model"), panel = document.getElementById("cell");
  const NAMES = surefoot.data.measures;
  const state = { row: 0, column: 0 };
  const heat = () => surefoot.data.heat[picker ? Number(picker.value) : 0];
  const measure = () => document.querySelector("#heat-measure input:checked").value;
  const written = (value, key) => (value === null ? "–" : key === "nll" ? value.toFixed(value < 10 ? 2 : 1) : `${(100 * value).toFixed(1)}`);
  const full = (value, key) => (value === null ? "–" : key === "nll" ? value.toFixed(3) : `${(100 * value).toFixed(1)}\u00a0%`);
  const make = (tag, text, name = "") => Object.assign(document.createElement(tag), { textContent: text, className: name });

  function badness(value, key, largest, clean) { // 0 to 1
    if (value === null) return 0;
    return Math.min(1, Math.max(0, key === "accuracy" ? 1 - value / (clean || 1) : value / largest));
  }
  const channels = (hex) => [1, 3, 5].map((k) => parseInt(hex.length === 4 ? hex[(k + 1) / 2].repeat(2) : hex.slice(k, k + 2), 16));
  const light = (rgb) => rgb.map((v) => v / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)).reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);

  function paint(button, bad) {
    const paper = channels(surefoot.colour("panel")), mixed = channels("#c24e00").map((v, k) => Math.round(bad * v + (1 - bad) * paper[k]));
    button.style.background = `rgb(${mixed})`;
    button.style.color = (light(mixed) + 0.05) ** 2 > 1.05 * 0.05 ? "#000" : "#fff"; // the one with more contrast
  }

  function build() {
    const grid = heat(), key = measure(), every = grid.rows.flatMap((row) => row.cells).filter(Boolean).map((cell) => cell[key][0]);
    const largest = Math.max(...every, key === "nll" ? 1 : 0.3), head = document.createElement("tr");
    head.append(make("th", "severity"), ...grid.severities.map((severity) => make("th", severity)));
    table.tHead.replaceChildren(head);
    let family = null;
    const lines = [];
    grid.rows.forEach((row, r) => {
      if (row.family !== family) {
        const line = make("tr", "", "family"), cell = make("th", row.family);
        cell.colSpan = grid.severities.length + 1;
        line.append(cell);
        lines.push(line);
        family = row.family;
      }
      const line = document.createElement("tr"), title = make("th", row.title);
      title.scope = "row";
      line.append(title, ...row.cells.map((cell, c) => {
        const slot = document.createElement("td");
        if (!cell) return slot;
        const button = make("button", written(cell[key][0], key)), chosen = r === state.row && c === state.column;
        Object.assign(button, { type: "button", tabIndex: chosen ? 0 : -1 });
        Object.assign(button.dataset, { row: r, column: c });
        button.setAttribute("aria-pressed", chosen);
        button.setAttribute("aria-label", `${row.title}, severity ${grid.severities[c]}: ${NAMES[key]} ${full(cell[key][0], key)}`);
        paint(button, badness(cell[key][0], key, largest, grid.clean.accuracy?.[0]));
        slot.append(button);
        return slot;
      }));
      lines.push(line);
    });
    table.tBodies[0].replaceChildren(...lines);
  }

  function open() {
    const grid = heat(), row = grid.rows[state.row], severity = grid.severities[state.column], cell = row.cells[state.column];
    const numbers = document.createElement("table"), parts = [make("h3", `${row.title}, severity ${severity}`), numbers];
    for (const key of Object.keys(NAMES)) {
      const line = numbers.insertRow(), [value, low, high] = cell[key];
      for (const text of [NAMES[key], full(value, key), `${full(low, key)} to ${full(high, key)}`]) line.insertCell().textContent = text;
    }
    const shown = surefoot.data.examples[picker ? Number(picker.value) : 0], example = shown.cells[`${row.name}/${severity}`];
    if (example) {
      const list = make("ul", "", "pictures");
      example.pictures.forEach((picture, k) => {
        const [predicted, confidence] = example.answers[k], label = shown.labels[k], item = document.createElement("li"), pair = make("div", "", "pair");
        for (const [source, text] of [[shown.clean[k], "as it is"], [picture, `with ${row.title}`]]) pair.append(Object.assign(document.createElement("img"), { src: surefoot.data.pictures[source], alt: `${shown.classes[label]} ${text}` }));
        const said = make("span", `${predicted === label ? "✓" : "✗"} says ${shown.classes[predicted]}, ${full(confidence)}`, predicted === label ? "right" : "wrong");
        item.append(pair, make("span", `is ${shown.classes[label]}`), said);
        list.append(item);
      });
      parts.push(list);
    } else parts.push(make("p", "No pictures were kept for this cell."));
    panel.replaceChildren(...parts);
  }

  function choose(row, column, focus) {
    const target = table.querySelector(`button[data-row="${row}"][data-column="${column}"]`);
    if (!target) return;
    const before = table.querySelector('button[aria-pressed="true"]');
    before?.setAttribute("aria-pressed", false);
    if (before) before.tabIndex = -1;
    Object.assign(state, { row, column });
    target.setAttribute("aria-pressed", true);
    target.tabIndex = 0;
    if (focus) target.focus();
    open();
  }

  table.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    choose(Number(button.dataset.row), Number(button.dataset.column), true);
    panel.scrollIntoView({ block: "nearest" });
  });
  const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  table.addEventListener("keydown", (event) => {
    const move = MOVES[event.key];
    if (!move || !event.target.closest("button")) return;
    event.preventDefault();
    choose(state.row + move[0], state.column + move[1], true);
  });

  function worst() {
    const grid = heat();
    let lowest = Infinity;
    grid.rows.forEach((row, r) => row.cells.forEach((cell, c) => {
      if (cell && cell.accuracy[0] < lowest) [lowest, state.row, state.column] = [cell.accuracy[0], r, c];
    }));
  }
  surefoot.repaint = build;
  document.getElementById("heat-measure").addEventListener("change", build);
  picker?.addEventListener("change", () => { worst(); build(); open(); });
  worst();
  build();
  open();
})();
