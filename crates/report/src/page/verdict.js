// The verdict: the answer, what was found level by level, and how it was decided.

const WORDS = {
  better: "better", worse: "worse", equivalent: "no difference that matters", no_difference_seen: "no difference seen, failures open",
  undecided: "not enough to tell",
};
const ENOUGH = { sufficient: "enough", insufficient: "not enough", failures_open: "failures open", open: "open" };
/** How a badge of each looks. */
const LOOK = { better: "better", worse: "worse", sufficient: "better", insufficient: "worse" };

function verdictSection(section) {
  if (!results) {
    byId("verdict-title").textContent = "Result";
    byId("sentences").append(...alikeWarnings());
    return section.append(runResult());
  }
  const { repetitions, about, metric, check, predictions, exploratory, decision } = results;
  const place = byId("sentences");
  place.append(...alikeWarnings());
  if (repetitions) place.append(counted(repetitions));
  else place.append(...foundCards(results, true));
  if (exploratory) {
    place.append(el("details", { class: "verdict" },
      el("summary", {}, `Beyond the plan: ${plural(exploratory.pairs, "pair")}, exploratory. It decides nothing; the answer above stands.`),
      foundCards(exploratory.findings, false)));
  }
  if (decision.kind === "open" && decision.next) place.append(el("p", { class: "note" }, `The next look is at ${plural(decision.next, "pair")}.`));
  const solved = metric.threshold === null ? "" : `; a run at ${metric.threshold} or better solved the task`;
  const facts = [
    ["Predicted", about.prediction],
    ...predictions.map(({ predicted, fate }) => [`Prediction ${fate}`, predicted]),
    ["Longer training", check?.sentence],
    ["Registration", data.registered && registeredWords(data.registered)],
    ["Expected from", about.expected],
    ["Few seeds", results.why_seeds],
    ["Recorded after earlier runs", about.result],
    ["Task", taskWords],
    ["Metric", `${deciding.words}${metric.read ? ` ${metric.read}` : ""}; a difference up to ${metric.margin} does not matter${solved}`],
  ];
  section.append(factList(facts));
}

const factList = (facts) => el("dl", { class: "facts" }, facts.filter(([, words]) => words).map(([name, words]) => [el("dt", {}, name), el("dd", {}, words)]));

/** How the registration stands; changes after runs had ended are warnings beside the answer. */
function registeredWords({ time, hash, ended, changes }) {
  if (!time) return null;
  const early = changes.filter((change) => change.ended === 0).map((change) => `; changed before any run had ended: ${change.changed.join("; ")}`);
  return `registered on ${time.slice(0, 10)} ${ended === 0 ? "before the first run" : "after runs had ended"}, BLAKE3 ${hash.slice(0, 10)}${early.join("")}`;
}

/** A sentence's beginning; the name of an arm stays as it is. */
const said = (sentence) => (arms.some(({ label }) => sentence.startsWith(label)) ? sentence : capital(sentence));

/** Cards of what some pairs show. The answer stands above those of the results, so that a single sentence is not said again. */
function foundCards({ sweeps, verdicts, interactions }, isAnswer) {
  const cards = [];
  if (sweeps.length > 1) cards.push(neededMap(sweeps));
  cards.push(...sweeps.map((sweep) => sweepCard(sweep, verdicts.filter(({ level }) => sameLevel(level, sweep.level)), !isAnswer || sweeps.length > 1)));
  if (!sweeps.length) {
    const own = verdicts.map((verdict) => verdictCard(verdict, !isAnswer || verdicts.length > 1));
    cards.push(...(verdicts.length > 6 ? [verdictTable(verdicts), el("details", {}, el("summary", {}, "Each arm with its numbers"), own)] : own));
  }
  if (interactions.length) cards.push(el("div", { class: "verdict" }, interactions.map(({ sentence }) => el("p", { class: "how" }, `${said(sentence)}.`))));
  return cards;
}

const sameLevel = (a, b) => Object.keys(a).length === Object.keys(b).length && Object.entries(a).every(([key, value]) => b[key] === value);
const levelName = (key) => key.split(".").at(-1).replaceAll("_", " ");

/** How many are needed, a line a level. */
function neededMap(sweeps) {
  const keys = Object.keys(sweeps[0].level);
  const numbers = [...new Set(sweeps.flatMap(({ found }) => found.steps.map(({ value }) => value)))].sort((a, b) => a - b);
  const rows = sweeps.map(({ level, words, found }) => [keys.map((key) => `${levelName(key)} ${level[key]}`).join(", "), words, ...numbers.map((value) => {
    const step = found.steps.find((step) => step.value === value);
    return step ? el("span", { class: `badge ${LOOK[step.enough] ?? ""}` }, fixed(step.description?.mean, 3)) : "–";
  })]);
  return table("How many are needed", ["Level", `${results.sweep.unit.many} needed`, ...numbers.map((value) => `with ${value}`)], rows, [1]);
}

/** A sweep at one level: its sentence, each number, and the arms against their baseline. */
function sweepCard({ sentence, words, at, found }, verdicts, isSaid) {
  const { rules } = found;
  const rows = found.steps.map((step) => [step.name, fixed(step.description?.mean), fixed(step.description?.standard_deviation),
    el("span", { class: `badge ${LOOK[step.enough] ?? ""}` }, ENOUGH[step.enough]), step.diverged ? whole(step.diverged) : "–", `${fixed(100 * step.failures.bound, 0)} %`]);
  return el("div", { class: "verdict" },
    el("span", { class: "badge" }, `${results.sweep.unit.many} needed${at ? ` ${at}` : ""}: ${words}`),
    isSaid ? el("p", {}, sentence) : null,
    table(`Which numbers are enough${at ? ` ${at}` : ""}`, ["Arm", "mean", "sd", "enough?", "diverged", "failures at most"], rows, [3]),
    el("p", { class: "how" }, `A number is enough if no other is better by more than the margin of ${rules.margin}, by limits that hold for all pairs of ${rules.arms} arms together (${Number((100 * rules.alpha).toFixed(2))} %), and pairs like these exclude failures in more than ${fixed(100 * rules.max_failure, 0)} % of runs.`),
    verdicts.length ? el("details", {}, el("summary", {}, `Every arm against ${verdicts[0].found.baseline.name}`), verdicts.length > 6 ? verdictTable(verdicts) : null, verdicts.map((verdict) => verdictCard(verdict, true))) : null);
}

/** Many verdicts, a line each. */
function verdictTable(verdicts) {
  const rows = verdicts.map(({ found }) => [found.arm.name, found.baseline.name, el("span", { class: `badge ${LOOK[found.statement.kind] ?? ""}` }, WORDS[found.statement.kind]),
    `${fixed(found.arm.description?.mean)} against ${fixed(found.baseline.description?.mean)}`, found.estimate ? signed(found.estimate.mean) : "–", found.interval ? `${fixed(found.interval.low)} to ${fixed(found.interval.high)}` : "–"]);
  return table("Verdicts", ["Arm", "against", "verdict", "means", "ahead by", "interval"], rows, [1, 2]);
}

function verdictCard({ found, sentence, solving, sooner }, isSaid) {
  const { kind } = found.statement;
  return el("div", { class: `verdict ${LOOK[kind] ?? ""}` },
    el("span", { class: `badge ${LOOK[kind] ?? ""}` }, `${found.arm.name}: ${WORDS[kind]}`),
    isSaid ? el("p", {}, `${said(sentence)}.`) : null,
    [solving, sooner].filter(Boolean).map((words) => el("p", { class: "beside" }, `${said(words)}.`)),
    el("p", { class: "how" }, how(found)));
}

/** The numbers beside the deciding interval. */
function how(found) {
  const { interval, equivalence, rules, failures, further, correlation, p_value: p, sign_flip: flip, bootstrap, probability_of_improvement: improvement, won, tied, lost } = found;
  const parts = [];
  if (interval) {
    const among = rules.arms > 2 ? ` (wide enough for all pairs of ${rules.arms} arms)` : "";
    const limits = ["equivalent", "no_difference_seen"].includes(found.statement.kind) ? equivalence : interval;
    parts.push(`Decided by the paired ${Number((limits.level * 100).toFixed(2))} % interval${among}, ${fixed(limits.low)} to ${fixed(limits.high)}, against the margin of ${rules.margin}.`);
  }
  const odd = failures.seeds.length ? `${plural(failures.seeds.length, "pair")} unlike the others (${failures.seeds.join(", ")})` : "No pair is unlike the others";
  parts.push(`${odd}: such pairs may be up to ${fixed(100 * failures.bound, 0)} % of all.`);
  if (further) parts.push(further.further === null ? "No number of pairs that is worth naming would decide." : `About ${plural(further.further, "further pair")} would probably decide.`);
  parts.push(`Pairs won ${won}, tied ${tied}, lost ${lost}.`);
  const beside = [];
  if (correlation !== null) beside.push(`correlation of the pairs ${fixed(correlation, 2)}`);
  if (p !== null) beside.push(`t test p ${probability(p)}`);
  if (flip) beside.push(`sign-flip p ${probability(flip.p_value)} (no smaller than ${probability(flip.floor)} with ${plural(flip.pairs, "pair")})`);
  if (bootstrap) beside.push(`bootstrap interval ${fixed(bootstrap.low)} to ${fixed(bootstrap.high)}`);
  if (improvement !== null) beside.push(`probability of improvement ${fixed(improvement, 2)}`);
  if (beside.length) parts.push(`Beside it: ${beside.join(", ")}.`);
  return parts.join(" ");
}

function counted({ each }) {
  const differing = each.filter(({ statement }) => ["better", "worse"].includes(statement.kind));
  return el("div", { class: "verdict" },
    el("p", {}, differing.length ? "Those that found a difference:" : "None of them found a difference."),
    differing.map(({ sentence }) => el("p", { class: "how" }, `${said(sentence)}.`)));
}

/** The end of the report: what was predicted, and how it ended. */
function predictionSection(section) {
  if (!results?.predictions.length) return false;
  const look = { held: "better", failed: "worse", undecided: "" };
  section.append(table("Predictions", ["Predicted before the runs", "ended"], results.predictions.map(({ predicted, fate }) => [predicted, el("span", { class: `badge ${look[fate]}` }, fate)]), [1]));
  if (results.about.prediction) section.append(el("p", { class: "note" }, `In its author's words: ${results.about.prediction}`));
  section.hidden = false;
  return true;
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
