// The data of the page, and what all of its parts ask of it.
//
// An experiment has `results` and `timings`, a single run has `run`; both have `context` and `arms`, and `heads` where the
// heads were analysed. See page.rs, results.rs and the heads.rs of headcount-runs for the fields.

const data = JSON.parse(byId("data").textContent);
const results = data.results;

const arms = data.arms.map((arm, index) => ({ ...arm, index, result: results?.arms[index] ?? null }));
const armNamed = (name) => arms.find((arm) => arm.name === name);

/** What models are measured by, and which of them decides: {key, words}. A single run has the usual one, on no set. */
const { metrics } = data.context;
const { deciding } = data;
const metricOf = (key) => metrics.find((metric) => metric.key === key);
/** What stands for a model in short. */
const usual = metricOf(data.usual) ?? metrics[0];

/** The pairs, or the seed of a single run. */
const pairs = results ? results.seeds : [data.run.seed];

/** An arm's colour with enough contrast in the present theme. */
function armColour(arm) {
  let [red, green, blue] = [1, 3, 5].map((at) => parseInt(arm.colour.slice(at, at + 2), 16));
  const ground = isDark() ? luminance(16, 21, 27) : 1;
  const towards = isDark() ? 255 : 0;
  const contrast = () => {
    const own = luminance(red, green, blue);
    return (Math.max(own, ground) + 0.05) / (Math.min(own, ground) + 0.05);
  };
  const enough = isDark() ? 4.5 : 2.2;
  for (let tries = 0; tries < 20 && contrast() < enough; tries++) {
    [red, green, blue] = [red, green, blue].map((value) => value + (towards - value) * 0.1);
  }
  return `rgb(${[red, green, blue].map(Math.round).join(", ")})`;
}

/** Relative luminance (WCAG 2). */
function luminance(...channels) {
  const [red, green, blue] = channels.map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** A piece of an arm's line: colour, dashes and mark. */
const swatch = (arm) => svg("svg", { class: "swatch", viewBox: "0 0 34 10", "aria-hidden": "true" },
  svg("line", { x1: 0, x2: 34, y1: 5, y2: 5, stroke: armColour(arm), "stroke-width": 4, "stroke-dasharray": arm.dash || "none" }),
  markAt(arm, 17, 5));

/** The mark of an arm at a place, as SVG. */
function markAt(arm, x, y, size = 4.5) {
  const fill = armColour(arm);
  if (arm.mark === "circle") return [svg("circle", { cx: x, cy: y, r: size, fill })];
  if (arm.mark === "square") return [svg("rect", { x: x - size, y: y - size, width: 2 * size, height: 2 * size, fill })];
  return [];
}

/** Where the marks of a line of so many points stand. */
const markedPoints = (count) => {
  const every = Math.max(1, Math.ceil(count / 6));
  return Array.from({ length: count }, (_, index) => index).filter((index) => index % every === Math.floor(every / 2));
};

/** The curves of the single runs of an arm: {pair, split, step, tokens, and a column of each metric by its key}. */
const seedCurves = arms.map((arm) => data.context.curves.filter((run) => run.arm === arm.name)
  .flatMap((run) => run.curves.map((curve) => ({ pair: run.pair, ...curve }))));

/** Tokens that an arm has read after `step`: between the points of its longest curve, on a straight line. */
function tokensAt(arm, step) {
  const longest = seedCurves[arm.index].reduce((best, curve) => (curve.step.length > (best?.step.length ?? 0) ? curve : best), null);
  if (!longest) return step;
  const { step: steps, tokens } = longest;
  if (steps.length === 1) return steps[0] > 0 ? (tokens[0] / steps[0]) * step : 0;
  const found = steps.findIndex((at) => at >= step);
  const after = found < 0 ? steps.length - 1 : Math.max(1, found);
  const share = (step - steps[after - 1]) / (steps[after] - steps[after - 1]);
  return Math.round(tokens[after - 1] + share * (tokens[after] - tokens[after - 1]));
}

/** Analysed heads: {arm, pair, analysis, measures} for every run that has an analysis. */
const headRuns = (data.heads?.arms ?? []).flatMap((each) => each.runs.filter((run) => run.analysis && armNamed(each.name))
  .map((run) => ({ arm: armNamed(each.name), pair: run.pair, analysis: run.analysis, measures: each.measures })));

/** What the models had to do, in words. */
const taskWords = data.context.tasks.map(({ kind, about }) => `${kind}: ${about}`).join(" ");

const SITES = { decoder: "self-attention", encoder: "encoder", cross: "cross-attention" };
