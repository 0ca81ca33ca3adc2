// Paired differences: one dot a seed, the deciding interval, the margin.

function differencesSection(section) {
  if (!results?.comparisons.some((comparison) => comparison.pairs.length)) return false;
  const { comparisons } = results;
  const repetitions = results.repetitions?.each ?? null;
  const label = comparisons.map((comparison) => {
    const { interval } = comparison;
    return `${comparison.arm.name} minus ${comparison.baseline.name}: ` + (interval ? `mean ${fixed(interval.mean_difference)}, interval ${fixed(interval.low)} to ${fixed(interval.high)}` : "no interval");
  }).join("; ");
  const chart = drawing(label, 62 + comparisons.length * 96, (width) => strips(comparisons, width));
  section.append(figure("differences", differencesCaption(comparisons[0]), chart.host, chart.svg));
  const rows = comparisons.flatMap((comparison) => comparison.pairs.map((pair) => [
    `${comparison.arm.name}, seed ${pair.seed}`, pair.arm_diverged ? "diverged" : fixed(pair.arm), pair.baseline_diverged ? "diverged" : fixed(pair.baseline), signed(pair.difference)]));
  section.append(el("details", {}, el("summary", {}, "Every difference as a number"),
    table("Paired differences", ["Pair", "arm", "baseline", "difference"], rows)));
  if (repetitions) section.append(repetitionsFigure(repetitions));
  section.hidden = false;
  return true;
}

function differencesCaption({ metric }) {
  const better = metric.direction === "higher_is_better" ? "Right of 0 the arm is better" : "Left of 0 the arm is better: a smaller loss";
  return `${capital(metric.name)}, arm minus baseline. ${better}. Dots: seeds; dark bar and tick: interval and mean; a ring marks a pair in which a run diverged.`;
}

function strips(comparisons, width) {
  const [left, right, top] = [12, width - 12, 18];
  const bottom = top + comparisons.length * 96;
  const { margin } = comparisons[0];
  const values = comparisons.flatMap(({ pairs, interval }) => [...pairs.map((pair) => pair.difference), interval?.low ?? 0, interval?.high ?? 0]);
  const x = scale(...extent([...values, -margin, margin, 0], 0.05), left, right);
  const parts = [svg("rect", { x: x.at(-margin), y: top, width: x.at(margin) - x.at(-margin), height: bottom - top, fill: "var(--line)", "fill-opacity": 0.7 })];
  parts.push(bottomAxis(x, left, right, bottom, top, `difference in ${comparisons[0].metric.name}`));
  parts.push(svg("line", { x1: x.at(0), x2: x.at(0), y1: top, y2: bottom, stroke: "var(--muted)", "stroke-width": 1.5 }));
  comparisons.forEach(({ arm, baseline, pairs, interval }, row) => {
    const style = arms.find((each) => each.label === arm.name && each.label !== baseline.name) ?? arms[0];
    const middle = top + row * 96 + 50;
    parts.push(text(left + 4, middle - 28, `${arm.name} − ${baseline.name}`, { "font-weight": 600, stroke: "var(--ground)", "stroke-width": 4, "paint-order": "stroke" }));
    pairs.forEach((pair, index) => {
      const diverged = pair.arm_diverged || pair.baseline_diverged;
      const dot = svg("circle", {
        class: "seed", cx: x.at(pair.difference), cy: middle - 9 + (index % 3) * 9, r: 5, fill: diverged ? "none" : armColour(style),
        "fill-opacity": 0.85, stroke: diverged ? armColour(style) : "var(--ground)", "stroke-width": diverged ? 2 : 1,
      }, svg("title", {}, `seed ${pair.seed}: ${signed(pair.difference)}`));
      parts.push(dot);
    });
    if (interval) {
      const y = middle + 26;
      parts.push(svg("line", { x1: x.at(interval.low), x2: x.at(interval.high), y1: y, y2: y, stroke: "var(--ink)", "stroke-width": 5 }));
      parts.push(svg("line", { x1: x.at(interval.mean_difference), x2: x.at(interval.mean_difference), y1: y - 8, y2: y + 8, stroke: "var(--ink)", "stroke-width": 2.5 }));
      const end = x.at(interval.mean_difference) > (left + right) / 2;
      parts.push(text(end ? x.at(interval.low) - 8 : x.at(interval.high) + 8, y + 4, `${signed(interval.mean_difference)} (${fixed(interval.low)} to ${fixed(interval.high)})`,
        { "text-anchor": end ? "end" : "start", fill: "var(--ink)", "font-size": 12 }));
    }
  });
  return parts;
}

/** Each repetition's interval, one line each. */
function repetitionsFigure(each) {
  const { margin } = results.metric;
  const known = each.filter(({ interval }) => interval);
  const chart = drawing(`Intervals of ${plural(known.length, "repetition")}`, 70 + 18 * known.length, (width) => {
    const [left, right, top] = [12, width - 12, 12];
    const bottom = top + 18 * known.length + 8;
    const x = scale(...extent([...known.flatMap(({ interval }) => [interval.low, interval.high]), -margin, margin, 0]), left, right);
    return [
      svg("rect", { x: x.at(-margin), y: top, width: x.at(margin) - x.at(-margin), height: bottom - top, fill: "var(--line)", "fill-opacity": 0.7 }),
      bottomAxis(x, left, right, bottom, top, `difference in ${metricName}`),
      svg("line", { x1: x.at(0), x2: x.at(0), y1: top, y2: bottom, stroke: "var(--muted)" }),
      known.map(({ interval, verdict, seeds, arm }, index) => {
        const y = top + 14 + 18 * index;
        const stroke = ["better", "worse"].includes(verdict.kind) ? "var(--bad)" : "var(--ink)";
        return [
          svg("line", { x1: x.at(interval.low), x2: x.at(interval.high), y1: y, y2: y, stroke, "stroke-width": 3 }, svg("title", {}, `${arm}, seeds ${seeds[0]} to ${seeds.at(-1)}: ${WORDS[verdict.kind]}`)),
          svg("circle", { cx: x.at(interval.mean_difference), cy: y, r: 4, fill: stroke }),
        ];
      }),
    ];
  });
  return figure("repetitions", "The interval of each repetition, on seeds of its own. Those that found a difference are coloured.", chart.host, chart.svg);
}
