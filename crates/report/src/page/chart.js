// What is drawn here needs of a chart: a scale, ticks, text.

/** A scale from numbers to positions. */
function scale(low, high, from, to) {
  const on = (value) => (value - low) / (high - low);
  return { at: (value) => from + Math.min(1, Math.max(0, on(value))) * (to - from) };
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

const text = (x, y, words, more = {}) => svg("text", { x, y, fill: "var(--ink)", "font-size": 13, ...more }, words);
