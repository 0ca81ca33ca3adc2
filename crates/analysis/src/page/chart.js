// What small SVG charts are made of: scales, ticks and axes.

/** A scale from numbers to positions; with `log`, both ends are above 0. */
function scale(low, high, from, to, log = false) {
  if (!(low < high)) [low, high] = log ? [low / 2, low * 2] : [low - 0.5, low + 0.5];
  const on = (value) => (log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low));
  return { low, high, log, at: (value) => from + Math.min(1, Math.max(0, on(value))) * (to - from), ticks: (count) => ticks(low, high, count, log) };
}

/** Round numbers within the ends, about `count` of them. */
function ticks(low, high, count, log = false) {
  if (log) {
    for (const steps of [[1], [1, 3], [1, 2, 5], [1, 2, 3, 4, 5, 6, 7, 8, 9]]) {
      const found = [];
      for (let decade = Math.floor(Math.log10(low)); decade <= Math.ceil(Math.log10(high)); decade++) {
        found.push(...steps.map((step) => Number(`${step}e${decade}`)).filter((value) => value >= low && value <= high));
      }
      if (found.length >= Math.min(3, count)) return found;
    }
  }
  const raw = (high - low) / count;
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].find((factor) => factor * unit >= raw * 0.999) * unit;
  const found = [];
  for (let index = Math.ceil(low / step - 1e-9); index * step <= high + step * 1e-9; index++) found.push(Number((index * step).toPrecision(12)));
  return found;
}

/** Low and high of numbers with a margin on either side. */
function extent(values, share = 0.06) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const reach = high > low ? share * (high - low) : 0.1 * Math.max(Math.abs(high), 0.1);
  return [low - reach, high + reach];
}

const text = (x, y, words, more = {}) => svg("text", { x, y, fill: "var(--ink)", "font-size": 13, ...more }, words);

/** Line, ticks, numbers and label along the bottom. */
function bottomAxis(x, left, right, bottom, top, label, marks = null) {
  const line = svg("line", { x1: left, x2: right, y1: bottom, y2: bottom, stroke: "var(--shade)" });
  const grid = (marks ?? x.ticks(Math.max(3, Math.floor((right - left) / 90)))).map((tick) => [
    svg("line", { x1: x.at(tick), x2: x.at(tick), y1: top, y2: bottom, stroke: "var(--faint)" }),
    text(x.at(tick), bottom + 18, short(tick), { "text-anchor": "middle", "font-size": 12, fill: "var(--muted)" }),
  ]);
  return [grid, line, text((left + right) / 2, bottom + 38, label, { "text-anchor": "middle", fill: "var(--muted)" })];
}

/** Grid lines, numbers and label along the left. */
function leftAxis(y, left, right, label) {
  const grid = y.ticks(5).map((tick) => [
    svg("line", { x1: left, x2: right, y1: y.at(tick), y2: y.at(tick), stroke: "var(--faint)" }),
    text(left - 8, y.at(tick) + 4, short(tick), { "text-anchor": "end", "font-size": 12, fill: "var(--muted)" }),
  ]);
  return [grid, text(0, 14, label, { fill: "var(--muted)" })];
}

/** A drawing as wide as its place, `height` units high for that width. `paint` gets the width. */
function drawing(label, height, paint) {
  const host = el("div", { class: "plot" });
  const draw = (width) => svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label }, paint(width));
  let shown = 0;
  const show = () => {
    const width = Math.max(280, Math.floor(host.clientWidth || 720));
    if (width === shown) return;
    shown = width;
    host.replaceChildren(draw(width));
  };
  new ResizeObserver(show).observe(host);
  document.addEventListener("themechange", () => { shown = 0; show(); });
  return { host, svg: () => host.querySelector("svg") };
}
