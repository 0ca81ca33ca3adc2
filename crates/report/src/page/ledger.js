// The matching ledger: what the arms share and where they differ.

function ledgerSection(section) {
  if (!results?.ledger) return false;
  const { ledger } = results;
  const allowed = { split: "only the number of heads (and of key/value heads) may differ", params: "only keys of [model] may differ, at nearly equal parameters", free: "anything may differ" };
  const row = (what, value, show = whole) => {
    const values = ledger.arms.map(value);
    const equal = values.every((each) => each === values[0]);
    const tuned = what === "Peak learning rate" && ledger.tuned;
    return [what, ...values.map(show), equal ? mark("equal", true) : tuned ? mark("tuned", true) : mark("differs", ledger.regime !== "split" || FOLLOWS.includes(what))];
  };
  const rows = [
    row("Parameters", (arm) => arm.parameters.total),
    row("FLOPs a step", (arm) => arm.flops_per_step.total),
    row("Tokens a step", (arm) => arm.tokens_per_step),
    row("Steps", (arm) => arm.steps),
    row("Heads", (arm) => arm.heads), row("Key/value heads", (arm) => arm.kv_heads), row("Width of a head", (arm) => arm.d_head),
    row("Width of the model", (arm) => arm.d_model), row("Layers", (arm) => arm.layers), row("Width of the MLP", (arm) => arm.d_ff),
    row("Peak learning rate", (arm) => arm.lr, short),
  ];
  section.append(
    el("p", { class: "note" }, `Regime ${ledger.regime}: ${allowed[ledger.regime]}.`),
    table("What the arms share", ["Quantity", ...ledger.arms.map(({ label }) => label), "Match"], rows));
  const pairsOf = (wrong) => (wrong.length === 0 ? `equal in ${plural(ledger.pairs_compared, "pair")}` : `different in ${wrong.length} of ${plural(ledger.pairs_compared, "pair")}: ${wrong.map(({ arm, pair }) => `${arm} ${pair}`).join(", ")}`);
  const facts = [
    ["Data and their order", pairsOf(ledger.other_data)],
    ["Initial weights of equal shape", pairsOf(ledger.other_weights)],
    ["Program", ledger.programs.map(programWords).join("; ") + (ledger.programs.length > 1 ? " (mixed!)" : "")],
    ["Backend", ledger.backends.join(", ") + (ledger.backends.length > 1 ? " (mixed!)" : "")],
    ...(ledger.simd.length > 0 ? [["Vector instructions", ledger.simd.join(", ") + (ledger.simd.length > 1 ? " (mixed!)" : "")]] : []),
  ];
  const keys = [...new Set(ledger.differences.map(({ key }) => key))];
  for (const key of keys) {
    const values = ledger.arms.map(({ name }) => {
      const own = ledger.differences.find((each) => each.key === key && each.arm === name);
      return `${own ? own.value : ledger.differences.find((each) => each.key === key).baseline_value} in ${name}`;
    });
    facts.push([key, values.join(", ") + (key === "train.lr" && ledger.tuned ? " (tuned for each arm)" : "")]);
  }
  section.append(el("dl", { class: "facts" }, facts.map(([name, words]) => [el("dt", {}, name), el("dd", {}, words)])));
  section.hidden = false;
  return true;
}

/** What follows from the number of heads, or is it. */
const FOLLOWS = ["Heads", "Key/value heads", "Width of a head"];

const mark = (words, fine) => el("span", { class: `badge ${fine ? "" : "worse"}` }, words);

function programWords({ version, commit, dirty, build }) {
  return `${version}, commit ${commit ? commit.slice(0, 10) : "unknown"}${dirty ? ", with changes" : ""}${build ? `, build ${build}` : ""}`;
}
