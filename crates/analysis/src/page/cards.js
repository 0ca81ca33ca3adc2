// Head cards: what each head does after training, beside what it did before.

/** Measure: its field, its words, its place in the glossary, and its ends where it has some. */
const MEASURES = [
  ["entropy", "entropy", "entropy", [0, 1]],
  ["confidence", "confidence", "confidence", [0, 1]],
  ["distance", "mean distance", "distance", null],
  ["previous_token", "previous token", "previous-token", [0, 1]],
  ["duplicate_token", "same token", "duplicate-token", [0, 1]],
  ["induction", "induction", "induction", [0, 1]],
  ["first_position", "position 0", "first-position", [0, 1]],
  ["output_share", "output share", "output-share", [0, 1]],
  ["removal", "cost of removal", "removal", null],
  ["alone", "cost if alone", "alone", null],
  ["importance", "importance", "importance", null],
];

function cardsSection(section) {
  if (!headRuns.length) return false;
  let run = headRuns.findLast(({ analysis }) => analysis.shown.length) ?? headRuns.at(-1);
  const deck = el("div");
  const show = () => deck.replaceChildren(...runCards(run));
  const choose = headRuns.length > 1 ? el("div", { class: "controls" }, picker("Run", headRuns.map((each, index) => [String(index), runWords(each)]), String(headRuns.indexOf(run)), (value) => { run = headRuns[Number(value)]; show(); })) : null;
  const across = acrossTable();
  section.append(...[across, choose, deck].filter(Boolean));
  section.hidden = false;
  show();
  document.addEventListener("themechange", show);
  return true;
}

/** Every head of a run, by attention. */
function runCards({ analysis }) {
  const [untrained, last] = [analysis.steps[0], analysis.steps.at(-1)];
  return last.attentions.flatMap((attention) => {
    const before = untrained.attentions.find(({ place, layer }) => place === attention.place && layer === attention.layer);
    const many = last.attentions.length > 1 || attention.place !== "decoder";
    return [
      many ? el("h3", {}, `${capital(PLACES[attention.place])}, layer ${attention.layer}`) : "",
      el("div", { class: "deck" }, attention.heads.map((head, index) => card(analysis, attention, head, before?.heads[index] ?? {}, index))),
    ];
  }).filter(Boolean);
}

function card(analysis, attention, head, before, index) {
  const canvas = attention.maps ? el("canvas", { class: "map thumb", "aria-hidden": "true" }) : null;
  if (canvas) paintMap(canvas, mapOf(attention.maps, index, 0), "root");
  const rows = MEASURES.filter(([field]) => head[field] !== null && head[field] !== undefined).map(([field, words, anchor, ends]) => el("tr", {},
    el("th", { scope: "row" }, el("a", { href: `#${anchor}` }, words)),
    el("td", {}, measure(field, head[field])),
    el("td", { class: "before" }, measure(field, before[field])),
    el("td", { class: "track" }, ends ? track(head[field], before[field], ends) : null)));
  const registers = head.registers ? head.registers.map((weight, register) => el("tr", {},
    el("th", { scope: "row" }, el("a", { href: "#registers" }, `register ${register}`)),
    el("td", {}, fixed(weight, 2)), el("td", { class: "before" }, fixed(before.registers?.[register], 2)),
    el("td", { class: "track" }, track(weight, before.registers?.[register], [0, 1], true)))) : [];
  const head_ = el("tr", {}, el("th", { scope: "col" }, el("span", { class: "unseen" }, "measure")), el("td", {}, "trained"), el("td", { class: "before" }, "untrained"), el("td", {}, el("span", { class: "unseen" }, "both on a line")));
  return el("article", { class: "card" },
    canvas,
    el("h4", {}, `Head ${index}`, head.flags.map((flag) => el("span", { class: `badge ${flag}` }, flag))),
    head.flags.map((flag) => el("p", { class: "why" }, reason(flag, analysis, head))),
    el("p", { class: "says" }, reads(head, attention)),
    el("table", {}, el("caption", { class: "unseen" }, `Measures of head ${index}`), el("thead", {}, head_), el("tbody", {}, rows, registers)));
}

const measure = (field, value) => (["removal", "alone"].includes(field) ? (value === null || value === undefined ? "–" : signed(value, 3)) : fixed(value, field === "distance" ? 1 : field === "importance" ? 4 : 2));

/** Both values on a line from one end to the other: trained filled, untrained hollow. */
function track(value, before, [low, high], bar = false) {
  const x = scale(low, high, 4, 64);
  return svg("svg", { viewBox: "0 0 68 14", "aria-hidden": "true" },
    svg("line", { x1: 4, x2: 64, y1: 7, y2: 7, stroke: "var(--line)", "stroke-width": 2 }),
    bar ? svg("line", { x1: 4, x2: x.at(value), y1: 7, y2: 7, stroke: "var(--accent)", "stroke-width": 6 }) : [],
    before === null || before === undefined ? [] : svg("circle", { cx: x.at(before), cy: 7, r: 3.5, fill: "var(--ground)", stroke: "var(--shade)", "stroke-width": 1.5 }),
    bar ? [] : svg("circle", { cx: x.at(value), cy: 7, r: 4, fill: "var(--accent)" }));
}

/** Why a head carries a flag. */
function reason(flag, analysis, head) {
  if (flag === "dead") return `Dead: removing it raises the loss by ${signed(head.removal, 4)} nats (less than 0.01), and it writes ${fixed(100 * head.output_share, 2)} % of the output (less than ${fixed(10 / analysis.heads, 2)} %).`;
  if (flag === "duplicate") return head.nearest ? `Duplicate: its maps are ${fixed(head.nearest.divergence, 4)} nats from those of head ${head.nearest.head}.` : "Duplicate of another head.";
  return `Sink: ${fixed(head.first_position, 2)} of its weight lies on position 0 (more than 0.3).`;
}

/** What a head reads, in one sentence. */
function reads(head, attention) {
  const near = head.nearest ? ` Most like head ${head.nearest.head} (${fixed(head.nearest.divergence, 3)} nats apart).` : "";
  if (head.registers) {
    const most = Math.max(...head.registers);
    return `Reads register ${head.registers.indexOf(most)} most: ${fixed(most, 2)} of its weight on that register's latest write.${near}`;
  }
  const kinds = [["previous_token", "the token before"], ["induction", "the token after an earlier copy of this one"], ["duplicate_token", "earlier copies of this token"], ["first_position", "position 0"]]
    .filter(([field]) => (head[field] ?? 0) > 0.4).sort((a, b) => head[b[0]] - head[a[0]]);
  const told = kinds.length ? `Reads ${kinds[0][1]} most (${fixed(head[kinds[0][0]], 2)}).` : attention.place === "cross" ? "" : "No single pattern takes more than 0.4 of its weight.";
  return `${told}${near}`;
}

/** What can be said across seeds: heads have no identity there, so counts and means of runs. */
function acrossTable() {
  const known = (data.heads?.arms ?? []).filter(({ last }) => last);
  if (!known.length || known.every(({ last }) => last.runs < 2)) return null;
  const spread = (value, digits) => (value ? `${fixed(value.mean, digits)} (${fixed(value.minimum, digits)} to ${fixed(value.maximum, digits)})` : "–");
  const cell = (before, last, digits) => [spread(last, digits), before ? el("span", { class: "before" }, `untrained ${fixed(before.mean, digits)}`) : ""];
  const rows = [["dead", "dead heads in a run", 1], ["duplicates", "duplicate heads in a run", 1], ["sinks", "sinks in a run", 1], ["entropy", "entropy, mean over heads", 3],
    ["divergence", "divergence between heads, nats", 3], ["previous_token", "previous token, mean over heads", 3], ["induction", "greatest induction score", 3], ["first_position", "position 0, mean over heads", 3]]
    .filter(([field]) => known.some(({ last }) => last[field]))
    .map(([field, words, digits]) => [words, ...known.map(({ untrained, last }) => cell(untrained?.[field], last[field], digits))]);
  const registers = Math.max(0, ...known.map(({ last }) => last.best_of_register?.length ?? 0));
  for (let register = 0; register < registers; register++) {
    rows.push([`register ${register}: weight of the head that reads it most`, ...known.map(({ untrained, last }) => cell(untrained?.best_of_register?.[register], last.best_of_register?.[register], 3))]);
  }
  rows.push(["cost of removing the costliest head, nats", ...known.map(({ untrained, last }) => cell(untrained?.removal_by_rank[0], last.removal_by_rank[0], 3))]);
  return el("div", {}, el("h3", {}, "Across seeds"),
    el("p", { class: "note" }, "Mean over the runs of an arm, and smallest to largest. Head 3 of one seed is not head 3 of another, so nothing is averaged by a head's number."),
    table("Heads across seeds", ["Measure", ...known.map(({ label }) => label)], rows),
    el("h3", {}, "Head by head"));
}
