// The verdict: a sentence an arm, and how it was decided.

const WORDS = { better: "better", worse: "worse", equivalent: "no difference that matters", undecided: "not enough to tell" };

function verdictSection(section) {
  if (!results) {
    byId("verdict-title").textContent = "Result";
    return section.append(runResult());
  }
  const { repetitions, about, comparisons, sentences } = results;
  const place = byId("sentences");
  place.replaceChildren();
  if (repetitions) place.append(counted(repetitions));
  else place.append(...comparisons.map((comparison, index) => verdictCard(comparison, sentences[index])));
  const facts = [
    ["Predicted", about.prediction],
    ["Expected from", about.expected],
    ["Few seeds", results.why_seeds],
    ["Recorded after earlier runs", about.result],
    ["Task", taskWords],
    ["Metric", `${deciding.words} at the final step; a difference up to ${results.metric.margin} does not matter` +
      (results.metric.threshold === null ? "" : `; a run at ${results.metric.threshold} or better solved the task`)],
  ];
  section.append(el("dl", { class: "facts" }, facts.filter(([, words]) => words).map(([name, words]) => [el("dt", {}, name), el("dd", {}, words)])));
}

function verdictCard(comparison, sentence) {
  const { kind } = comparison.verdict;
  return el("div", { class: `verdict ${kind}` },
    el("span", { class: `badge ${kind}` }, `${comparison.arm.name}: ${WORDS[kind]}`),
    el("p", {}, `${capital(sentence)}.`),
    el("p", { class: "how" }, how(comparison)));
}

/** The numbers beside the deciding interval. */
function how(comparison) {
  const { interval, margin, correction, sign_flip: flip, bootstrap, probability_of_improvement: improvement, won, tied, lost } = comparison;
  const parts = [];
  if (interval) {
    const share = Number((interval.level * 100).toFixed(2));
    const among = correction.arms > 1 ? ` (Holm-corrected for ${correction.arms} arms)` : "";
    parts.push(`Decided by the paired ${share} % Student t interval${among}, ${fixed(interval.low)} to ${fixed(interval.high)}, against the margin of ${margin}.`);
  }
  parts.push(`Pairs won ${won}, tied ${tied}, lost ${lost}.`);
  const beside = [];
  if (flip) beside.push(`sign-flip p ${probability(flip.p_value)} (no smaller than ${probability(flip.floor)} with ${plural(flip.pairs, "pair")})`);
  if (bootstrap) beside.push(`bootstrap interval ${fixed(bootstrap.low)} to ${fixed(bootstrap.high)}`);
  if (improvement !== null) beside.push(`probability of improvement ${fixed(improvement, 2)}`);
  if (beside.length) parts.push(`Beside it: ${beside.join(", ")}.`);
  return parts.join(" ");
}

function counted({ each, better, worse, equivalent, undecided }) {
  const differing = each.filter(({ verdict }) => ["better", "worse"].includes(verdict.kind));
  return el("div", { class: "verdict" },
    el("p", {}, `${plural(each.length, "repetition")}: ${better + worse} found a difference, ${equivalent} equivalent, ${undecided} undecided.`),
    differing.map(({ sentence }) => el("p", { class: "how" }, `${capital(sentence)}.`)));
}

function runResult() {
  const { run } = data;
  const objective = metricOf(data.objective);
  const score = (name, score) => score && [name, metrics.filter(({ key }) => key in score).map(({ key, words, unit }) => `${words} ${fixed(score[key])}${unit}`).join(", ")];
  const facts = [
    score(`Test, after ${run.steps} steps`, run.test),
    score("Validation", run.validation),
    objective && [`${capital(objective.best)} validation ${objective.words}`, run.best_validation_loss === null ? "none" : `${fixed(run.best_validation_loss)}${objective.unit} at step ${run.best_step}`],
    ["Parameters", whole(run.parameters.total)],
    ["FLOPs a step", short(run.flops_per_step.total)],
    ["Tokens a step", whole(run.tokens_per_step)],
    ["Task", taskWords],
  ];
  return el("dl", { class: "facts" }, facts.filter(Boolean).map(([name, words]) => [el("dt", {}, name), el("dd", {}, words)]));
}
