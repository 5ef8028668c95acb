// Tables: the twin of each figure, made from the numbers that are drawn; long lists on demand; headings that sort.
(() => {
  const LONGEST = 5000; // rows of a table
  const plain = (text) => new DOMParser().parseFromString(String(text ?? ""), "text/html").documentElement.textContent; // plotly's labels are HTML
  const written = (value, percent, text = plain) =>
    value === null || value === undefined ? "–" : typeof value !== "number" ? text(value) : percent ? `${(100 * value).toFixed(1)} %` : String(+value.toPrecision(4));

  function build(columns, rows) {
    const table = document.createElement("table"), head = table.createTHead().insertRow(), body = table.createTBody();
    for (const title of columns) head.append(Object.assign(document.createElement("th"), { textContent: title }));
    for (const row of rows.slice(0, LONGEST)) {
      const line = body.insertRow();
      for (const text of row) line.insertCell().textContent = text;
    }
    if (rows.length > LONGEST) table.createCaption().textContent = `The first ${LONGEST} of ${rows.length} rows.`;
    return table;
  }

  function twin(figure) {
    const layout = figure.layout, title = (axis) => plain(layout[axis]?.title?.text);
    const asPercent = (axis) => /%/.test(layout[axis]?.tickformat ?? "");
    const traces = figure.data.filter((trace) => trace.hoverinfo !== "skip" && trace.visible !== false);
    const axisOf = (trace, letter) => `${letter}axis${(trace[`${letter}axis`] ?? letter).slice(1)}`;
    const intervals = traces.some((trace) => trace.error_y?.array || trace.error_x?.array), labelled = traces.some((trace) => Array.isArray(trace.text)), coloured = traces.some((trace) => Array.isArray(trace.marker?.color) && typeof trace.marker.color[0] === "number");
    const heading = (letter, several) => {
      const axes = [...new Set(traces.map((trace) => axisOf(trace, letter)))]; // titles of subplots are not those of all rows
      return axes.length === 1 ? title(axes[0]) || letter : several;
    };
    const columns = ["series", heading("x", "x"), heading("y", "value")];
    if (labelled) columns.push("of");
    if (intervals) columns.push("from", "to");
    if (coloured) columns.push(plain(traces.find((trace) => trace.marker?.colorbar)?.marker.colorbar.title?.text) || "colour");
    const rows = [];
    for (const trace of traces) {
      const name = plain(trace.name), x = axisOf(trace, "x"), y = axisOf(trace, "y");
      if (trace.type === "box") {
        trace.x.forEach((at, k) => { for (const key of ["lowerfence", "q1", "median", "q3", "upperfence"]) rows.push([plain(at), key === "lowerfence" ? "lowest" : key === "upperfence" ? "highest" : key, written(trace[key][k])]); });
        continue;
      }
      if (Array.isArray(trace.z?.[0])) {
        trace.z.forEach((line, j) => line.forEach((value, i) => rows.push([name, `${written(trace.x[i])}, ${written(trace.y[j])}`, written(value)])));
        continue;
      }
      trace.x.forEach((at, k) => {
        const value = trace.y[k], row = [name, written(at, asPercent(x)), written(value, asPercent(y))];
        if (labelled) row.push(written(trace.text?.[k]));
        if (intervals) {
          const [error, middle, axis] = trace.error_x?.array ? [trace.error_x, at, x] : [trace.error_y, value, y], above = error?.array?.[k] ?? null;
          const bars = above !== null && middle !== null ? [middle - error.arrayminus[k], middle + above] : [null, null];
          row.push(...bars.map((end) => written(end, asPercent(axis))));
        }
        if (coloured) row.push(written(trace.marker.color?.[k]));
        rows.push(row);
      });
    }
    return build(columns, rows);
  }

  surefoot.twin = (details) => {
    if (!details.open) return;
    const name = details.dataset.figure;
    details.querySelector("div").replaceChildren(twin(surefoot.sources[name]()));
  };
  for (const details of document.querySelectorAll("details.twin")) {
    details.addEventListener("toggle", () => surefoot.twin(details));
    surefoot.onDraw[details.dataset.figure] = () => surefoot.twin(details);
  }

  for (const details of document.querySelectorAll("details.rows")) {
    details.addEventListener("toggle", () => {
      if (!details.open || details.querySelector("table")) return;
      const { columns, rows } = surefoot.data[details.dataset.rows];
      const table = build(columns.map((column) => column.title), rows.map((row) => row.map((value, k) => written(value, columns[k].format === "percent", String)))); // names as they are: no labels of plotly
      table.className = "sortable";
      details.querySelector("div").replaceChildren(table);
      sortable(table);
    });
  }

  function sortable(table) {
    [...table.tHead.rows[0].cells].forEach((cell, column) => {
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: cell.textContent });
      cell.replaceChildren(button);
      button.addEventListener("click", () => {
        const up = cell.getAttribute("aria-sort") !== "ascending", body = table.tBodies[0];
        const key = (row) => row.cells[column].firstChild?.textContent.trim() ?? "", number = (text) => parseFloat(text.replace(/,/g, ""));
        const order = [...body.rows].sort((a, b) => {
          const [p, q] = [key(a), key(b)], gap = number(p) - number(q);
          return (up ? 1 : -1) * (Number.isNaN(gap) ? p.localeCompare(q, undefined, { numeric: true }) : gap);
        });
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        cell.setAttribute("aria-sort", up ? "ascending" : "descending");
        body.append(...order);
      });
    });
  }
  document.querySelectorAll("table.sortable").forEach(sortable);
})();
