// Curves across arms: the sweep along a config key, and the learning rates that were tried.

function gridSection(section) {
  const shown = [sweepFigure(), ratesFigure()].filter(Boolean).flat();
  if (!shown.length) return false;
  section.append(...shown);
  section.hidden = false;
  return true;
}

/** The primary metric along the key that orders the arms. */
function sweepFigure() {
  const points = arms.filter(({ result }) => result && result.sweep_value !== null && result.description).sort((a, b) => a.result.sweep_value - b.result.sweep_value);
  if (!results?.sweep || points.length < 2) return null;
  const label = points.map(({ result }) => `${results.sweep} ${short(result.sweep_value)}: ${fixed(result.description.mean)}`).join("; ");
  const chart = drawing(`${capital(metricName)} along ${results.sweep}. ${label}`, 340, (width) => {
    const xs = points.map(({ result }) => result.sweep_value);
    const values = points.flatMap(({ result }) => [...result.runs.map((run) => run.value).filter((value) => value !== null), result.interval_of_mean?.low ?? result.description.mean, result.interval_of_mean?.high ?? result.description.mean]);
    const log = xs[0] > 0 && xs.at(-1) / xs[0] >= 4;
    const [left, right, top, bottom] = [52, width - 20, 26, 290];
    const x = scale(xs[0] * (log ? 0.85 : 1), xs.at(-1) * (log ? 1.18 : 1), left + 12, right - 12, log), y = scale(...extent(values), bottom, top);
    return [
      leftAxis(y, left, right, metricName), bottomAxis(x, left, right, bottom, top, results.sweep, xs),
      svg("polyline", { points: points.map(({ result }) => `${x.at(result.sweep_value)},${y.at(result.description.mean)}`).join(" "), fill: "none", stroke: "var(--shade)", "stroke-width": 2 }),
      points.map((arm) => marks(x.at(arm.result.sweep_value), y, arm.result.runs.map((run) => run.value), arm.result.description.mean, arm.result.interval_of_mean, arm)),
    ];
  });
  return [el("h3", {}, `Along ${results.sweep}`), figure("sweep", "Small dots: seeds. Large dots: means, with the 95 % interval of each arm's own mean (unpaired, so not what a verdict rests on).", chart.host, chart.svg)];
}

/** One arm at one place: its seeds, its mean, its interval. */
function marks(at, y, values, mean, interval, arm) {
  const fill = armColour(arm);
  return [
    values.filter((value) => value !== null).map((value, index) => svg("circle", { cx: at + 10 + (index % 2) * 4, cy: y.at(value), r: 2.5, fill, "fill-opacity": 0.5 })),
    interval ? svg("line", { x1: at, x2: at, y1: y.at(interval.low), y2: y.at(interval.high), stroke: fill, "stroke-width": 3 }) : [],
    mean === null ? [] : svg("circle", { cx: at, cy: y.at(mean), r: 6, fill, stroke: "var(--ground)", "stroke-width": 1.5 }, svg("title", {}, `${arm.label}: ${fixed(mean)}`)),
  ];
}

/** The metric of every learning rate of every arm. */
function ratesFigure() {
  const tuning = results?.tuning;
  const all = tuning?.arms.flatMap(({ rates }) => rates).filter(({ mean }) => mean !== null) ?? [];
  if (!all.length) return null;
  const words = tuning.metric.replace("_", " ");
  const label = tuning.arms.map(({ label, chosen }) => `${label}: ${chosen === null ? "none chosen" : `chose ${short(chosen)}`}`).join("; ");
  const chart = drawing(`${capital(words)} by learning rate. ${label}`, 340, (width) => {
    const [left, right, top, bottom] = [52, width - 20, 26, 290];
    const lrs = [...new Set(all.map(({ lr }) => lr))].sort((a, b) => a - b);
    const x = scale(lrs[0] / 1.15, lrs.at(-1) * 1.15, left + 10, right - 10, true), y = scale(...extent(all.map(({ mean }) => mean)), bottom, top);
    return [leftAxis(y, left, right, words), bottomAxis(x, left, right, bottom, top, "peak learning rate (log)", lrs), tuning.arms.map(({ arm: name, label, rates, chosen }) => {
      const arm = armNamed(name);
      const known = rates.filter(({ mean }) => mean !== null);
      const stroke = armColour(arm);
      return [
        svg("polyline", { points: known.map(({ lr, mean }) => `${x.at(lr)},${y.at(mean)}`).join(" "), fill: "none", stroke, "stroke-width": 2.2, "stroke-dasharray": arm.dash || "none" }),
        known.map(({ lr, mean, diverged }) => [
          svg("circle", { cx: x.at(lr), cy: y.at(mean), r: 4, fill: stroke }, svg("title", {}, `${label}, ${short(lr)}: ${fixed(mean)}${diverged ? `, ${diverged} diverged` : ""}`)),
          lr === chosen ? svg("circle", { cx: x.at(lr), cy: y.at(mean), r: 9, fill: "none", stroke, "stroke-width": 2 }) : [],
        ]),
        known.length ? text(x.at(known.at(-1).lr) - 8, y.at(known.at(-1).mean) - 12, label, { "text-anchor": "end", fill: stroke, "font-weight": 600 }) : [],
      ];
    })];
  });
  const edge = tuning.arms.filter(({ rates, chosen }) => rates.length > 1 && [rates[0].lr, rates.at(-1).lr].includes(chosen)).map(({ label }) => label);
  const beyond = edge.length ? ` At the edge of the grid for ${edge.join(" and ")}: a rate beyond it may be better.` : "";
  return [el("h3", {}, "Learning rates tried"), figure("learning-rates", `Means over ${plural(tuning.seeds.length, "seed")} that no reported run has, on the validation set. Ringed: the rate that each arm was then given. A diverged run enters with the worst value.${beyond}`, chart.host, chart.svg)];
}
