// Learning curves: training and validation, one metric at a time, means with bands or single seeds.

/** More arms than lie over one another and can be told apart. */
const MANY = 8;

function curvesSection(section) {
  const splits = ["test", "validation", "train"].filter((split) => seedCurves.some((curves) => curves.some((curve) => curve.split === split)));
  if (!splits.length) return false;
  const alone = !results;
  const hasTokens = seedCurves.some((curves) => curves.some((curve) => curve.tokens.length));
  const state = {
    quantity: (metricOf(deciding.key) ?? usual).key, x: "step", logX: false, logY: false, band: "quartile", seeds: alone,
    layout: arms.length > MANY ? "each" : "together", hiddenArms: new Set(), hiddenPairs: new Set(), at: null,
  };
  const hosts = splits.map((split) => el("div", { class: "plot", role: "img" }));
  const panels = el("div", { class: "panels" }, splits.map((split, index) =>
    el("div", {}, el("p", { class: "panel-title" }, capital(splitWords(split))), hosts[index])));
  const each = el("div", { class: "each", hidden: true });
  const readout = el("div", { class: "readout", "aria-live": "polite" });
  const slider = el("input", { type: "range", id: "read-at", oninput: () => read(stops[Number(slider.value)]) });
  const place = el("output", { for: "read-at" });
  let plots = [], stops = [];

  const shownArms = () => arms.filter((arm) => !state.hiddenArms.has(arm.name));
  const columnOf = (curve) => curve[state.quantity] ?? curve.step.map(() => null);
  const position = (arm, step) => (state.x === "tokens" ? tokensAt(arm, step) : step);
  /** The places of the slider: validated steps of all arms, as x values. */
  const validated = () => [...new Set(shownArms().flatMap((arm) =>
    seedCurves[arm.index].filter(({ split }) => split === splits[0]).flatMap((curve) => curve.step.map((step) => position(arm, step)))))].sort((a, b) => a - b);

  /** The mean curve of an arm with its band, null without. */
  function mean(arm, split) {
    const curve = arm.result?.curves.find((curve) => curve.split === split);
    if (!curve) return null;
    const edge = { quartile: ["lower_quartile", "upper_quartile"], range: ["minimum", "maximum"] }[state.band];
    const column = (name) => curve.points.map((point) => point[state.quantity]?.[name] ?? null);
    return {
      arm, x: curve.points.map((point) => position(arm, point.step)), y: column("mean"), width: 2.2, opacity: 1,
      dash: arm.dash ? arm.dash.split(" ").map(Number) : undefined, band: edge ? { low: column(edge[0]), high: column(edge[1]) } : null,
    };
  }

  function lines(split) {
    return shownArms().flatMap((arm) => {
      const seeds = !state.seeds ? [] : seedCurves[arm.index].filter((curve) => curve.split === split && !state.hiddenPairs.has(curve.pair))
        .map((curve) => ({ arm, pair: curve.pair, x: curve.step.map((step) => position(arm, step)), y: columnOf(curve), width: alone ? 2.2 : 1, opacity: alone ? 1 : 0.55, band: null }));
      return [...seeds, ...[mean(arm, split)].filter(Boolean)];
    });
  }

  function draw() {
    plots.forEach((plot) => plot.destroy());
    const threshold = results?.metric.threshold ?? null;
    const yLabel = `${metricOf(state.quantity).axis}${state.logY ? ", log" : ""}`;
    const xLabel = `${state.x === "tokens" ? "training tokens" : "optimiser steps"}${state.logX ? ", log" : ""}`;
    stops = validated();
    const apart = state.layout === "each";
    panels.hidden = apart;
    each.hidden = !apart;
    if (apart) each.replaceChildren(multiples(shownArms().map((arm) => ({ arm, curve: mean(arm, splits[0]) })), { logX: state.logX, logY: state.logY, xLabel, yLabel: `${splitWords(splits[0])} ${yLabel}` }));
    plots = apart ? [] : splits.map((split, index) => panel(hosts[index], {
      lines: lines(split), logX: state.logX, logY: state.logY, xLabel, yLabel, stops, onread: read,
      level: threshold !== null && split !== "train" && deciding.key === state.quantity ? { value: threshold, words: `solved at ${threshold}` } : null,
    }));
    slider.max = Math.max(0, stops.length - 1);
    splits.forEach((split, index) => hosts[index].setAttribute("aria-label", `${capital(splitWords(split))} ${metricOf(state.quantity).words} over training. ${spoken(split)}`));
    read(stops.includes(state.at) ? state.at : stops.at(-1));
  }

  /** The last value of every arm, in words. */
  const spoken = (split) => shownArms().map((arm) => {
    const last = nearest(arm, split, Infinity);
    return last ? `${arm.label} ends at ${fixed(last.mean)}` : `${arm.label} has no values`;
  }).join("; ");

  /** The point of an arm's mean curve (or its run) that is nearest to an x value. */
  function nearest(arm, split, at) {
    const [line] = [mean(arm, split), ...seedCurves[arm.index].filter((curve) => curve.split === split)
      .map((curve) => ({ x: curve.step.map((step) => position(arm, step)), y: columnOf(curve) }))].filter(Boolean);
    if (!line || !line.x.length) return null;
    const index = at === Infinity ? line.x.length - 1 : closest(line.x, at);
    return { x: line.x[index], mean: line.y[index], low: line.band?.low[index], high: line.band?.high[index] };
  }

  /** The values of the shown seeds of an arm near an x value: "0: 0.5931, 1: 0.5840". */
  function seedValues(arm, at) {
    const values = seedCurves[arm.index].filter((curve) => curve.split === splits[0] && !state.hiddenPairs.has(curve.pair)).map((curve) => {
      const index = closest(curve.step.map((step) => position(arm, step)), at);
      return `${curve.pair}: ${fixed(columnOf(curve)[index])}`;
    });
    return el("td", { class: "seeds" }, values.join(", "));
  }

  /** Shows the values at `at`, and a line there. */
  function read(at) {
    if (at === undefined) return readout.replaceChildren(el("p", {}, "No arm is shown."));
    state.at = at;
    slider.value = closest(stops, at);
    const unit = state.x === "tokens" ? "tokens" : "step";
    const told = unit === "step" ? `step ${whole(at)}` : `${short(at)} tokens`;
    place.textContent = told;
    slider.setAttribute("aria-valuetext", told);
    /** Training is read at its own steps: the nearest is said. */
    const where = (split) => {
      const places = new Set(shownArms().map((arm) => nearest(arm, split, at)?.x).filter((place) => place !== undefined && place !== null));
      const [only] = places;
      return places.size === 1 && Math.round(only) !== Math.round(at) ? ` (${unit === "step" ? `step ${whole(only)}` : `${short(only)} tokens`})` : "";
    };
    const cell = (point) => [point ? fixed(point.mean) : "–", point && point.low !== undefined ? [" ", el("span", { class: "before" }, `${fixed(point.low)} to ${fixed(point.high)}`)] : null];
    const withSeeds = state.seeds && !alone;
    const rows = shownArms().map((arm) => el("tr", {}, el("th", { scope: "row" }, swatch(arm), " ", arm.label), splits.map((split) => el("td", {}, cell(nearest(arm, split, at)))), withSeeds ? seedValues(arm, at) : null));
    readout.replaceChildren(el("table", {},
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, metricOf(state.quantity).words), splits.map((split) => el("th", { scope: "col" }, splitWords(split), el("span", { class: "before" }, where(split)))), withSeeds ? el("th", { scope: "col" }, `seeds, ${splitWords(splits[0])}`) : null)), el("tbody", {}, rows)));
    for (const plot of plots) plot.setCursor({ left: plot.valToPos(at, "x"), top: 0 }, false);
  }

  const change = (key) => (value) => { state[key] = value; if (key === "x") state.at = null; draw(); };
  const toggle = (set, key) => (on) => { on ? set.delete(key) : set.add(key); draw(); };
  const seedBoxes = el("fieldset", { hidden: !state.seeds || alone }, el("legend", {}, "Seeds"),
    pairs.map((pair) => choice("checkbox", String(pair), true, toggle(state.hiddenPairs, pair), { "aria-label": `seed ${pair}` })));
  const armBoxes = arms.map((arm) => {
    const mark = swatch(arm);
    document.addEventListener("themechange", () => mark.replaceChildren(...swatch(arm).childNodes));
    return choice("checkbox", [mark, arm.label], true, toggle(state.hiddenArms, arm.name), { "aria-label": arm.label });
  });
  section.append(
    el("div", { class: "controls" },
      radios("quantity", "Show", metrics.map(({ key, words }) => [key, words]), state.quantity, change("quantity")),
      hasTokens ? radios("x", "over", [["step", "steps"], ["tokens", "tokens"]], state.x, change("x")) : null,
      el("fieldset", {}, el("legend", {}, "Axes"), choice("checkbox", "log x", false, change("logX")), choice("checkbox", "log y", false, change("logY"))),
      arms.length > 2 ? radios("layout", "Arms", [["together", "in one plot"], ["each", "a plot each"]], state.layout, change("layout")) : null,
      alone ? null : picker("Band", [["quartile", "middle half of the seeds"], ["range", "smallest to largest"], ["none", "none"]], state.band, change("band"))),
    alone ? "" : el("div", { class: "controls" },
      el("fieldset", {}, el("legend", {}, "Arms"), armBoxes),
      choice("checkbox", "single seeds", state.seeds, (on) => { seedBoxes.hidden = !on; change("seeds")(on); }),
      seedBoxes),
    figure("curves", caption(alone), [panels, each, el("div", { class: "controls" }, el("label", { class: "slide" }, "Read at", slider, place)), readout],
      () => (state.layout === "each" ? each.querySelector("svg") : plotsSvg(`${data.title}: ${metricOf(state.quantity).words} over training`, plots.map((plot, index) => ({ plot, words: splitWords(splits[index]) })), shownArms()))));
  section.hidden = false;
  draw();
  document.addEventListener("themechange", draw);
  new ResizeObserver(() => plots.forEach((plot, index) => {
    if (hosts[index].clientWidth && plot.width !== hosts[index].clientWidth) plot.setSize({ width: hosts[index].clientWidth, height: HEIGHT });
  })).observe(panels);
  return true;
}

/** The index of the number that is nearest to another. */
const closest = (numbers, to) => numbers.reduce((best, number, index) => (Math.abs(number - to) < Math.abs(numbers[best] - to) ? index : best), 0);

const splitWords = (split) => ({ train: "training", validation: "validation", test: "results" })[split];

function caption(alone) {
  const averaged = results?.arms.flatMap((arm) => arm.curves).reduce((most, curve) => Math.max(most, curve.averaged_steps), 1) ?? 1;
  const parts = alone ? ["The run's validation and training curves."] : ["Line: mean over all seeds of an arm; band: spread over the seeds. Switching single seeds off leaves mean and band as they are."];
  if (averaged > 1) parts.push(`Training: means of ${averaged} logged steps.`);
  if (results?.arms.some((arm) => arm.diverged)) parts.push("A run that diverged stands at the penalty of its metric from there on: leaving it out would make its arm look better.");
  return parts.join(" ");
}
