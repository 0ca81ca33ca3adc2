// Many arms: a small plot each, with the others in grey behind it, and a map of all of them over what was varied.

const SMALL = { width: 236, height: 150, left: 44, right: 8, top: 26, bottom: 26, across: 5 };

/** The curves `{arm, curve: {x, y} or null}`, one small plot each on the same scales, as one drawing. */
function multiples(curves, { logX, logY, xLabel, yLabel }) {
  const { width, height, left, right, top, bottom, across } = SMALL;
  const fits = (log, value) => value !== null && value !== undefined && (!log || value > 0);
  const way = (log, value) => (log ? Math.log10(value) : value);
  const known = curves.filter(({ curve }) => curve).map(({ arm, curve }) => ({ arm, points: curve.x.map((x, index) => [x, curve.y[index]]).filter(([x, y]) => fits(logX, x) && fits(logY, y)) })).filter(({ points }) => points.length);
  if (!known.length) return el("p", {}, "No arm is shown.");
  const all = known.flatMap(({ points }) => points);
  const ends = (values) => [values.reduce((least, value) => Math.min(least, value), Infinity), values.reduce((most, value) => Math.max(most, value), -Infinity)];
  const [from, to] = ends(all.map(([x]) => x)), [low, high] = ends(all.map(([, y]) => y));
  const reach = low === high ? Math.abs(low) || 1 : 0;
  const x = scale(way(logX, from), way(logX, to === from ? from + 1 : to), left, width - right), y = scale(way(logY, low), way(logY, high) + reach, height - bottom, top);
  const path = (points) => points.map(([at, value]) => `${x.at(way(logX, at)).toFixed(1)},${y.at(way(logY, value)).toFixed(1)}`).join(" ");
  const behind = known.map(({ points }) => svg("polyline", { points: path(points), fill: "none", stroke: "var(--line)", "stroke-width": 1 }));
  const columns = Math.min(across, known.length), rows = Math.ceil(known.length / columns);
  const parts = known.map(({ arm, points }, index) => {
    const small = { "font-size": 11, fill: "var(--muted)" };
    return svg("g", { transform: `translate(${(index % columns) * width} ${Math.floor(index / columns) * height})` },
      behind.map((line) => line.cloneNode()),
      svg("polyline", { points: path(points), fill: "none", stroke: armColour(arm), "stroke-width": 2.5 }),
      text(left, 17, arm.label, { "font-weight": 600, "font-size": 13 }),
      text(width - right, 17, fixed(points.at(-1)[1], 3), { ...small, fill: "var(--ink)", "text-anchor": "end" }),
      text(left - 6, top + 9, short(high), { ...small, "text-anchor": "end" }), text(left - 6, height - bottom, short(low), { ...small, "text-anchor": "end" }),
      text(left, height - bottom + 15, short(from), small), text(width - right, height - bottom + 15, short(to), { ...small, "text-anchor": "end" }),
      svg("line", { x1: left, x2: width - right, y1: height - bottom, y2: height - bottom, stroke: "var(--line)" }));
  });
  const drawn = svg("svg", { viewBox: `0 0 ${columns * width} ${rows * height + 24}`, role: "img", "aria-label": `${yLabel} of every arm over ${xLabel}, a plot each; the table below has the values` },
    parts, text(left, rows * height + 14, `${yLabel} over ${xLabel}; grey: the other arms; at the right: the last value`, { "font-size": 12, fill: "var(--muted)" }));
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "A plot for every arm" }, drawn);
}

/** Every arm at its place in a map of what was varied, coloured by its mean; null for fewer than four arms or one key. */
function settingsMap() {
  const keys = Object.keys(arms[0]?.result?.settings ?? {});
  if (arms.length < 4 || keys.length < 2) return null;
  const values = (key) => [...new Set(arms.map(({ result }) => result.settings[key]))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const swept = results.sweep?.key;
  // Across: what is swept, else the key with most values of those that are independent of the others.
  const across = keys.includes(swept) ? swept : [...keys].sort((a, b) => values(b).length - values(a).length)[0];
  const down = keys.filter((key) => key !== across);
  const words = (result) => down.map((key) => `${levelName(key)} ${result.settings[key]}`).join(", ");
  const levels = [...new Set(arms.map(({ result }) => words(result)))];
  // One arm a place: otherwise it is no map.
  const at = (level, value) => arms.filter(({ result }) => words(result) === level && result.settings[across] === value);
  const columns = values(across);
  if (levels.length > arms.length / 2 || levels.some((level) => columns.some((value) => at(level, value).length > 1))) return null;
  const means = arms.map(({ result }) => result.description?.mean).filter((mean) => mean !== undefined);
  const [low, high] = [Math.min(...means), Math.max(...means)];
  const cell = (arm) => {
    const mean = arm?.result.description?.mean;
    if (mean === undefined) return "–";
    const share = high > low ? (mean - low) / (high - low) : 0.5;
    const [red, green, blue] = ramp()(share);
    const isLight = luminance(red, green, blue) > 0.18;
    return el("span", { class: "heat", style: { background: `rgb(${red},${green},${blue})`, color: isLight ? "#000" : "#fff" } }, fixed(mean, 3));
  };
  const rows = levels.map((level) => [level, ...columns.map((value) => cell(at(level, value)[0]))]);
  return el("div", {}, el("h3", {}, `Every arm on a map: mean ${deciding.words}`),
    table("Map of the arms", [down.map(levelName).join(", "), ...columns.map((value) => `${levelName(across)} ${value}`)], rows));
}

/** What holds across settings: the map, then the figures. */
function settingsSection(section) {
  const place = el("div");
  const fill = () => place.replaceChildren(...[results && settingsMap()].filter(Boolean));
  fill();
  document.addEventListener("themechange", fill);
  const hasFigures = figuresSection(section);
  if (!place.childNodes.length) return hasFigures;
  section.querySelector("h2").after(place);
  section.hidden = false;
  return true;
}
