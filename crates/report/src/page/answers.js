// What the models say where they are asked, beside what is right.

/** Whether something is asked at a position of a sample. */
const isAsked = (token) => token?.target !== null && token?.target !== undefined;

/** The answer at a position: {target, told: [[class, probability], …], said, isRight}; null where none is asked or kept. */
function answerAt(run, at, sample, position) {
  const tokens = run.analysis.shown[sample]?.tokens ?? [];
  if (!isAsked(tokens[position])) return null;
  const told = at.answers?.[sample]?.[tokens.slice(0, position).filter(isAsked).length];
  if (!told?.length) return null;
  const [said] = told[0], { target } = tokens[position];
  return { target, told, said, isRight: said === target };
}

/** How many answers of a sample are wrong, of how many; null where they are not kept. */
function errorsOf(run, at, sample) {
  const tokens = run.analysis.shown[sample]?.tokens ?? [];
  const all = tokens.map((_, position) => answerAt(run, at, sample, position)).filter(Boolean);
  return all.length ? { wrong: all.filter(({ isRight }) => !isRight).length, of: all.length } : null;
}

/** An answer in words: "the model says 5 (0.98) where 5 is right". */
function answerWords({ target, told, isRight }) {
  const [said, sure] = told[0];
  const others = told.slice(1).filter(([, share]) => share >= 0.005).map(([other, share]) => `${other} (${fixed(share, 2)})`);
  return `the model says ${said} (${fixed(sure, 2)}), ${isRight ? "right" : `wrong: ${target} is right`}${others.length ? `; then ${others.join(", ")}` : ""}`;
}

/** Every position of a sample as a button: right, wrong, or not asked. `pick(position)` is called with the one that is chosen. */
function answerStrip(run, at, sample, chosen, pick) {
  const tokens = run.analysis.shown[sample]?.tokens ?? [];
  const errors = errorsOf(run, at, sample);
  if (!errors) return el("p", { class: "note" }, "What the model says is not kept for this sample and step.");
  const buttons = tokens.map((token, position) => {
    const answer = answerAt(run, at, sample, position);
    const kind = !answer ? "unasked" : answer.isRight ? "right" : "wrong";
    const label = `Position ${position} (${token.label}): ${answer ? answerWords(answer) : token.padding ? "padding" : "nothing is asked"}`;
    return el("button", { type: "button", class: `answer ${kind}`, "aria-pressed": String(position === chosen), "data-tip": label, onclick: () => pick(position) },
      el("span", {}, cut(token)), el("b", {}, answer ? (answer.isRight ? `${answer.said}` : `${answer.said}≠${answer.target}`) : "·"), el("span", { class: "unseen" }, label));
  });
  return el("div", {},
    el("p", { class: "layer" }, `Answers: ${errors.of - errors.wrong} of ${errors.of} right in this sample. Under each token what the model says; ≠ and what is right where it is wrong.`),
    el("div", { class: "answers scroll", role: "group", tabindex: 0, "aria-label": `Answers of ${runWords(run)}` }, buttons));
}
