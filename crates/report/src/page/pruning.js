// How many of its heads a trained model uses: what it scores with fewer and fewer of them.

const PRUNED = { width: 760, left: 78, right: 20, plot: 264, bottom: 52 };

/** Every run that was pruned: {arm, pair, analysis, pruning}. */
const prunedRuns = headRuns.filter(({ analysis }) => analysis.pruning).map((run) => ({ ...run, pruning: run.analysis.pruning }));

/** The part of the section on heads that tells of it; null where nothing was pruned. */
function prunedPart() {
  if (!prunedRuns.length) return null;
  const { metric: key, margin } = prunedRuns[0].pruning.used;
  const metric = metricOf(key) ?? usual;
  const digits = metric.digits + 1;
  const point = (pruning, kept) => pruning.points.find((each) => each.kept === kept);
  const value = (each) => (each ? `${fixed(each.test[key], digits)} ± ${fixed(each.standard_error[key], digits)}` : "–");
  const rows = prunedRuns.map(({ arm, pair, pruning }) => {
    const all = pruning.points[0];
    return [[swatch(arm), ` ${arm.label}`], `${pruning.used.heads} of ${all.kept}`, value(point(pruning, pruning.used.heads)), value(all), whole(pair)];
  });
  const [first] = prunedRuns;
  const needed = results?.sweep?.key === "model.heads" ? results.sweeps.map(({ words, at }) => (at ? `${words} ${at}` : words)).join("; ") : "";
  const figure = el("figure", {}, prunedFigure(metric, key));
  figure.append(saveButtons(`${data.title}-heads-used`, () => figure.querySelector("svg")));
  const each = prunedRuns.flatMap(({ arm, pruning }) => pruning.points.map((at) => [
    `${arm.label}, ${at.kept} kept`, at.removed ? placeWords(at.removed) : "none",
    ...metrics.flatMap((kind) => [fixed(at.test[kind.key]), fixed(at.standard_error[kind.key]), fixed(at.difference_standard_error[kind.key])])]));
  const columns = metrics.flatMap(({ words }) => [`test ${words}`, "standard error", "of the difference to all heads"]);
  return el("div", { id: "heads-used" },
    el("h3", {}, "Heads used"),
    el("p", { class: "note" }, `The fewest of its heads with which a trained model's test ${metric.words} is within ${margin} of that with all of them. `
      + "The head that is missed least goes first; in its place stands its mean. It says what the trained model uses, not whether a model with so few heads can be trained: that is what arms with fewer heads are for."),
    ...(needed ? [el("p", {}, `Needed to be trained with: ${needed}.`)] : []),
    table("Heads used", ["Arm", "heads used", `test ${metric.words} with them`, "with all heads", results ? "pair" : "seed"], rows),
    figure,
    el("p", { class: "note" }, `Heads were chosen by the loss on ${plural(first.pruning.validation_samples, "validation sample")}, what is left was read on ${plural(first.pruning.test_samples, "test sample")}${prunedRuns.length > 1 ? " (first arm)" : ""}; bars: one standard error over samples.`),
    el("details", {}, el("summary", {}, "Every number of heads"), table("Heads used, every number", ["Heads", "removed last", ...columns], each, [1])));
}

const placeWords = ({ site, layer, head }) => `${SITES[site]}, layer ${layer}, head ${head}`;

/** The metric over the heads that are kept, a line a run; a ring where the heads that are used end. */
function prunedFigure(metric, key) {
  const { width, left, right, plot, bottom } = PRUNED;
  // Names of the arms, in as many rows as they need.
  const names = [];
  let [across, row] = [left, 42];
  for (const { arm } of prunedRuns) {
    const room = 44 + arm.label.length * 7.2;
    if (across + room > width && across > left) [across, row] = [left, row + 18];
    names.push({ across, row });
    across += room;
  }
  const top = row + 22, height = top + plot + bottom;
  const most = Math.max(1, ...prunedRuns.map(({ pruning }) => pruning.points[0].kept));
  const ends = prunedRuns.flatMap(({ pruning }) => pruning.points.flatMap(({ test, standard_error: error }) => [test[key] - (error[key] ?? 0), test[key] + (error[key] ?? 0)]));
  const [low, high] = padded(Math.min(...ends), Math.max(...ends));
  const x = scale(0, most, left + 8, width - right - 8), y = scale(low, high, height - bottom, top);
  const parts = [text(left, 24, `Test ${metric.words} with fewer heads`, { "font-size": 15, "font-weight": 600 })];
  for (const tick of ticks(low, high, 5)) {
    parts.push(svg("line", { x1: left, x2: width - right, y1: y.at(tick), y2: y.at(tick), stroke: "var(--faint)" }));
    parts.push(text(left - 8, y.at(tick) + 4, short(tick), { "text-anchor": "end", "font-size": 12, fill: "var(--muted)" }));
  }
  for (const tick of ticks(0, most, Math.min(most, 8)).filter(Number.isInteger)) {
    parts.push(text(x.at(tick), height - bottom + 20, short(tick), { "text-anchor": "middle", "font-size": 12, fill: "var(--muted)" }));
  }
  parts.push(svg("line", { x1: left, x2: width - right, y1: height - bottom, y2: height - bottom, stroke: "var(--line)" }));
  parts.push(text((left + width - right) / 2, height - 8, "heads kept", { "text-anchor": "middle", fill: "var(--muted)" }));
  parts.push(text(18, (top + height - bottom) / 2, metric.axis, { "text-anchor": "middle", fill: "var(--muted)", transform: `rotate(-90 18 ${(top + height - bottom) / 2})` }));
  prunedRuns.forEach(({ arm, pruning }, index) => {
    const ink = armColour(arm), name = names[index];
    parts.push(svg("line", { x1: name.across, x2: name.across + 22, y1: name.row, y2: name.row, stroke: ink, "stroke-width": 3, "stroke-dasharray": arm.dash || "none" }));
    parts.push(text(name.across + 28, name.row + 4, arm.label, { "font-size": 12 }));
    const places = pruning.points.map(({ kept, test }) => `${x.at(kept).toFixed(1)},${y.at(test[key]).toFixed(1)}`);
    parts.push(svg("polyline", { points: places.join(" "), fill: "none", stroke: ink, "stroke-width": 2, "stroke-dasharray": arm.dash || "none" }));
    for (const { kept, removed, test, standard_error: error } of pruning.points) {
      const reach = error[key] ?? 0, at = x.at(kept);
      parts.push(svg("line", { x1: at, x2: at, y1: y.at(test[key] - reach), y2: y.at(test[key] + reach), stroke: ink, "stroke-width": 1.5 }));
      const words = `${arm.label}, ${kept} kept: ${metric.words} ${fixed(test[key])}${removed ? `; removed last: ${placeWords(removed)}` : ""}`;
      parts.push(svg("circle", { cx: at, cy: y.at(test[key]), r: 3.5, fill: ink }, svg("title", {}, words)));
      if (kept === pruning.used.heads) parts.push(svg("circle", { cx: at, cy: y.at(test[key]), r: 8, fill: "none", stroke: ink, "stroke-width": 2 }));
    }
  });
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Test ${metric.words} with fewer heads; the table above and the list below have its numbers` }, parts);
}
