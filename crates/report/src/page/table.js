// Tables: they scroll by themselves, keep their headings in sight, sort, say what their columns mean, and can be taken along.

/**
 * A table in a frame that scrolls by itself; the first cell of a row is its heading. Cells may be nodes. `textColumns` are
 * those that hold words, `name` that of its files.
 */
function table(caption, head, rows, textColumns = [], name = caption) {
  const kind = (index) => (index === 0 || textColumns.includes(index) ? "text" : null);
  const headings = head.map((cell, index) => el("th", { scope: "col", class: kind(index) }, headingOf(cell, () => sort(index), rows.length > 2)));
  const lines = rows.map((row) => el("tr", {}, row.map((cell, index) =>
    index === 0 ? el("th", { scope: "row", class: "text" }, cell) : el("td", { class: kind(index) }, cell))));
  const body = el("tbody", {}, lines);
  const whole = el("table", {}, el("caption", { class: "unseen" }, caption), el("thead", {}, el("tr", {}, headings)), body);
  const frame = el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `${caption} (table)` }, whole);
  const hint = el("p", { class: "hint", hidden: true }, "Wider than the page: scroll it sideways →");
  new ResizeObserver(() => { hint.hidden = frame.scrollWidth <= frame.clientWidth + 1; }).observe(frame);

  /** Rising, falling, then as it was. */
  function sort(column) {
    const now = headings[column].getAttribute("aria-sort");
    const next = { ascending: "descending", descending: null }[now] ?? (now ? null : "ascending");
    headings.forEach((heading, index) => (index === column && next ? heading.setAttribute("aria-sort", next) : heading.removeAttribute("aria-sort")));
    const order = next ? [...lines].sort((a, b) => compared(worth(a.cells[column]), worth(b.cells[column]), next === "descending")) : lines;
    body.replaceChildren(...order);
  }
  const content = () => [headings, ...[...body.rows].map((row) => [...row.cells])].map((row) => row.map(told));
  const save = (kind, ending, write) => el("button", { type: "button", "aria-label": `Save the table ${caption} as ${kind}`,
    onclick: () => download(`${data.title}-${name}.${ending}`, new Blob([write(content(), caption)], { type: "text/plain" })) }, kind);
  return el("div", { class: "table" }, hint, frame, el("div", { class: "save" }, "Save as", save("CSV", "csv", csv), save("Markdown", "md", markdown), save("LaTeX", "tex", latex)));
}

/** What stands at the top of a column: its words, which say what they mean, and sort where there is something to sort. */
function headingOf(cell, sort, sorts) {
  const meaning = typeof cell === "string" ? explained(cell) : null;
  if (!sorts) return meaning ? el("span", { tabindex: 0, class: "term", "data-tip": meaning }, cell) : cell;
  return el("button", { type: "button", class: "sort", "data-tip": meaning, onclick: sort }, cell, el("span", { class: "way", "aria-hidden": "true" }));
}

/** The words of a cell; what only ears get is none of them. */
function told(cell) {
  const copy = cell.cloneNode(true);
  copy.querySelectorAll(".way, .unseen").forEach((node) => node.remove());
  return copy.textContent.trim().replace(/\s+/g, " ");
}

/** What a cell is sorted by: its first number, else its words; null where there is nothing. */
function worth(cell) {
  const words = told(cell);
  if (words === "–" || words === "") return null;
  if (words.startsWith("never")) return Infinity;
  const number = /^[+<]?\s*(-?[\d,]*\.?\d+(?:e[+-]?\d+)?)([kM]?)(?=$|[\s%±(])/.exec(words.replaceAll("−", "-"));
  return number ? Number(number[1].replaceAll(",", "")) * ({ k: 1e3, M: 1e6 }[number[2]] ?? 1) : words;
}

/** Numbers before words, nothing last, whichever way. */
function compared(a, b, falls) {
  if (a === null || b === null) return (a === null) - (b === null);
  const by = typeof a === "number" && typeof b === "number" ? (a < b ? -1 : a > b ? 1 : 0)
    : typeof a !== typeof b ? (typeof a === "number" ? -1 : 1) : a.localeCompare(b, "en", { numeric: true });
  return falls ? -by : by;
}

const csv = (rows) => rows.map((row) => row.map((cell) => {
  const words = cell.replaceAll("−", "-");
  return /[",\n]/.test(words) ? `"${words.replaceAll('"', '""')}"` : words;
}).join(",")).join("\n") + "\n";

function markdown([head, ...rows]) {
  const line = (cells) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(head), line(head.map((_, index) => (index === 0 ? "---" : "---:"))), ...rows.map(line)].join("\n") + "\n";
}

/** With the lines of the package booktabs. */
function latex([head, ...rows], caption) {
  const special = { "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "−": "$-$", "±": "$\\pm$", "–": "--", "→": "$\\to$", "×": "$\\times$" };
  const safe = (words) => words.replace(/[\\~^−±–→×]|[&%$#_{}]/g, (letter) => special[letter] ?? `\\${letter}`);
  const line = (cells) => `  ${cells.map(safe).join(" & ")} \\\\`;
  return [`% ${caption}; needs \\usepackage{booktabs}`, `\\begin{tabular}{l${"r".repeat(head.length - 1)}}`, "  \\toprule", line(head), "  \\midrule", ...rows.map(line), "  \\bottomrule", "\\end{tabular}"].join("\n") + "\n";
}
