// Stability, and the tables of arms and runs.

function stabilitySection(section) {
  // Of results of others nothing is known of how they trained.
  if (results && !results.ledger && !results.problems.length) return false;
  section.append(...(results ? stabilityOfArms() : stabilityOfRun()));
  section.hidden = false;
  return true;
}

function stabilityOfArms() {
  const rows = results.arms.map(({ label, finished, diverged, missing, stability }) => [
    label, `${finished} finished${diverged ? `, ${diverged} diverged` : ""}${missing ? `, ${missing} missing` : ""}`,
    `${stability.spike_episodes} in ${plural(stability.runs_with_spikes, "run")}`, whole(stability.judged_steps), fixed(stability.gradient_tail, 2), whole(stability.losses_not_finite)]);
  const parts = !results.ledger ? [] : [table("Stability of every arm", ["Arm", "Runs", "Loss spikes", "Steps judged", "Gradient tail", "Losses not finite"], rows, [1])];
  if (results.problems.length) {
    parts.push(el("h3", {}, "Runs that did not finish"),
      el("p", { class: "note" }, "A diverged run counts as a failure of its arm and is never dropped; a missing run says nothing, and its pair is left out."),
      table("Runs that did not finish", ["Arm", "Seed", "What happened", "Directory"], results.problems.map(({ arm, pair, reason, directory }) => [armNamed(arm)?.label ?? arm, String(pair), reason, directory]), [2, 3]));
  } else parts.push(el("p", { class: "note" }, "Every run finished; none diverged."));
  return parts;
}

function stabilityOfRun() {
  const { run } = data;
  return [el("dl", { class: "facts" }, [
    ["How it ended", run.status], ["Loss spikes", plural(run.spike_episodes, "episode")], ["Gradient tail", fixed(run.gradient_tail, 2)],
  ].map(([name, words]) => [el("dt", {}, name), el("dd", {}, words)]))];
}

function tablesSection(section) {
  if (!results) return false;
  const threshold = results.metric.threshold;
  const seconds = new Map((data.timings?.runs ?? []).map((run) => [`${run.arm} ${run.pair}`, run.seconds]));
  const armSeconds = new Map((data.timings?.arms ?? []).map((arm) => [arm.arm, arm]));
  const stepsTo = (steps) => (!steps ? "–" : steps.median === null ? (steps.reached === 0 ? "never" : `never in ${steps.never_reached} of ${steps.first_step.length}`) : `${whole(steps.median)}${steps.never_reached ? ` (${steps.never_reached} never)` : ""}`);
  const { published } = results;
  // What others published may be of any size.
  const number = (value) => (published && value && Math.abs(value) < 0.01 ? value.toExponential(2) : fixed(value));
  const armRows = results.arms.map((arm) => {
    const { description: told, solve_rate: rate } = arm;
    return [`${arm.label}${arm.name === results.baseline ? " (baseline)" : ""}`, number(told?.mean), number(told?.standard_deviation), number(told?.interquartile_mean), number(told?.median), number(told?.minimum), number(told?.maximum),
      ...(published ? [number(published.values[arm.name])] : []),
      rate ? [`${rate.successes} of ${rate.trials}`, el("span", { class: "before" }, `${fixed(rate.low, 2)} to ${fixed(rate.high, 2)}`)] : "–", stepsTo(arm.steps_to_threshold), fixed(armSeconds.get(arm.name)?.seconds, 1), short(armSeconds.get(arm.name)?.tokens_per_second)];
  });
  const at = threshold === null ? "threshold" : threshold;
  section.append(el("h3", {}, `Arms: ${deciding.words}${results.metric.read ? ` ${results.metric.read}` : ""}`),
    table("Arms", ["Arm", "mean", "sd", "IQM", "median", "smallest", "largest", ...(published ? ["published"] : []), "solved (95 % interval)", `steps to ${at}`, "seconds a run", "tokens a second"], armRows));
  if (published) section.append(el("p", { class: "note" }, `Published: ${published.source} (${published.of_runs}).${published.differs ? ` Ours differ: ${published.differs}.` : ""}`));
  if (data.common_rates.length) {
    const names = data.common_rates[0][1].map(([name]) => name);
    section.append(el("h3", {}, `At every common learning rate: ahead of ${armNamed(results.baseline)?.label} in the tuning runs`),
      table("At every common learning rate", ["Learning rate", ...names], data.common_rates.map(([rate, ahead]) => [short(rate), ...ahead.map(([, by]) => signed(by))])));
  }
  const { columns } = data.context;
  const runRows = results.arms.flatMap((arm) => arm.runs.map((run) => [
    arm.label, String(run.seed), el("span", { class: `badge ${run.status}` }, run.status), ...columns.map(({ name }) => fixed(run[name])),
    whole(run.best_step), whole(run.first_step_at_threshold), whole(run.spike_episodes), fixed(run.gradient_tail, 2), fixed(seconds.get(`${arm.name} ${run.pair}`), 1), run.directory]));
  section.append(el("h3", {}, "Runs"),
    table("Runs", ["Arm", "seed", "ended", ...columns.map(({ words }) => words), "best step", `step at ${at}`, "spikes", "gradient tail", "seconds", "directory"], runRows, [2, 8 + columns.length]));
  section.hidden = false;
  return true;
}
