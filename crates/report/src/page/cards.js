// Head cards: what each head does after training, beside what it did before.

/** How a number of each unit is written. */
const UNITS = {
  share: (value) => fixed(value, 2), positions: (value) => fixed(value, 1), slope: (value) => fixed(value, 4),
  nats: (value) => (value === null || value === undefined ? "–" : signed(value, 3)),
};

/** The numbers of a measure of a head: one, or one a part; none where it has no meaning. */
const numbersOf = (head, { key }) => [head?.measures[key] ?? []].flat();

function cardsSection(section) {
  if (!headRuns.length) return false;
  let run = headRuns.findLast(({ analysis }) => analysis.steps.length > 2 && analysis.shown.length) ?? headRuns.findLast(({ analysis }) => analysis.shown.length) ?? headRuns.at(-1);
  const deck = el("div");
  const show = () => deck.replaceChildren(...runCards(run));
  const choose = headRuns.length > 1 ? el("div", { class: "controls" }, picker("Run", headRuns.map((each, index) => [String(index), runWords(each)]), String(headRuns.indexOf(run)), (value) => { run = headRuns[Number(value)]; show(); })) : null;
  const across = acrossTable();
  const used = prunedPart();
  section.append(...[used, across, el("h3", {}, "Head by head"), choose, deck].filter(Boolean));
  section.hidden = false;
  show();
  document.addEventListener("themechange", () => { used?.replaceChildren(...prunedPart().childNodes); show(); });
  return true;
}

/** Every head of a run, by attention. */
function runCards({ analysis, measures }) {
  const [untrained, last] = [analysis.steps[0], analysis.steps.at(-1)];
  return last.attentions.flatMap((attention) => {
    const before = untrained.attentions.find(({ site, layer }) => site === attention.site && layer === attention.layer);
    const many = last.attentions.length > 1 || attention.site !== "decoder";
    return [
      many ? el("h3", {}, `${capital(SITES[attention.site])}, layer ${attention.layer}`) : "",
      el("div", { class: "deck" }, attention.heads.map((head, index) => card(analysis, measures, attention, head, before?.heads[index], index))),
    ];
  }).filter(Boolean);
}

function card(analysis, measures, attention, head, before, index) {
  const canvas = attention.maps ? el("canvas", { class: "map thumb", "aria-hidden": "true" }) : null;
  if (canvas) paintMap(canvas, mapOf(attention.maps, index, 0), "root");
  const rows = measures.flatMap((measure) => numbersOf(head, measure).map((value, part) => {
    const earlier = numbersOf(before, measure)[part], written = UNITS[measure.unit];
    return el("tr", {},
      el("th", { scope: "row" }, el("a", { href: `#measure-${measure.key}` }, measure.parts[part] ?? measure.title)),
      el("td", {}, written(value)),
      el("td", { class: "before" }, written(earlier)),
      el("td", { class: "track" }, measure.range ? track(value, earlier, measure.range, measure.parts.length > 0) : null));
  }));
  const head_ = el("tr", {}, el("th", { scope: "col" }, el("span", { class: "unseen" }, "measure")), el("td", {}, "trained"), el("td", { class: "before" }, "untrained"), el("td", {}, el("span", { class: "unseen" }, "both on a line")));
  return el("article", { class: "card" },
    canvas,
    el("h4", {}, `Head ${index}`, head.flags.map((flag) => el("span", { class: `badge ${flag}` }, flag))),
    head.flags.map((flag) => reason(flag, analysis, head)).filter(Boolean).map((words) => el("p", { class: "why" }, words)),
    (head.roles ?? []).filter(({ role }) => role !== "spare").map((role) => roleLine(role, measures)),
    el("p", { class: "says" }, reads(head, measures, attention)),
    el("table", {}, el("caption", { class: "unseen" }, `Measures of head ${index}`), el("thead", {}, head_), el("tbody", {}, rows)));
}

/** A role with its number and that of the untrained head. */
function roleLine({ role, words, measure, value, untrained }, measures) {
  const written = UNITS[measures.find(({ key }) => key === measure)?.unit ?? "share"];
  return el("p", { class: "role" }, el("a", { href: `#role-${role}` }, capital(words)), `: ${written(value)}`, el("span", { class: "before" }, untrained === null ? "" : ` (${written(untrained)} untrained)`));
}

/** Where heads all look alike: a sentence for every arm in which that is so. */
function alikeWarnings() {
  return (data.heads?.arms ?? []).flatMap(({ label, runs }) => {
    const known = runs.filter(({ analysis }) => analysis);
    const found = known.filter(({ analysis }) => analysis.alike?.length);
    if (!found.length) return [];
    const where = results ? `${label}, ${found.length} of ${plural(known.length, "run")}: ` : "";
    return found[0].analysis.alike.map(({ words }) => el("p", { class: "warning" }, `${where}${words}.`));
  });
}

/** Both values on a line from one end to the other: trained filled, untrained hollow. */
function track(value, before, [low, high], bar = false) {
  const x = scale(low, high, 4, 64);
  return svg("svg", { viewBox: "0 0 68 14", "aria-hidden": "true" },
    svg("line", { x1: 4, x2: 64, y1: 7, y2: 7, stroke: "var(--line)", "stroke-width": 2 }),
    bar ? svg("line", { x1: 4, x2: x.at(value), y1: 7, y2: 7, stroke: "var(--accent)", "stroke-width": 6 }) : [],
    before === null || before === undefined ? [] : svg("circle", { cx: x.at(before), cy: 7, r: 3.5, fill: "var(--ground)", stroke: "var(--shade)", "stroke-width": 1.5 }),
    bar ? [] : svg("circle", { cx: x.at(value), cy: 7, r: 4, fill: "var(--accent)" }));
}

/** Why a head carries a flag; null where another of its flags says it. */
function reason(flag, analysis, head) {
  const { removal, output_share: share, first_position: first } = head.measures;
  if (flag === "spare") return head.flags.includes("dead") ? null : `Spare: removing it alone raises the loss by ${signed(removal, 4)} nats (less than 0.01).`;
  if (flag === "dead") return `Dead: removing it raises the loss by ${signed(removal, 4)} nats (less than 0.01), and it writes ${fixed(100 * share, 2)} % of the output (less than ${fixed(10 / analysis.heads, 2)} %).`;
  if (flag === "twin") return head.nearest ? `Twin: its maps are ${fixed(head.nearest.divergence, 4)} nats from those of head ${head.nearest.head}.` : "Twin of another head.";
  return `Sink: ${fixed(first, 2)} of its weight lies on position 0 (more than 0.3).`;
}

/** What a head reads, in one sentence. */
function reads(head, measures, attention) {
  const near = head.nearest ? ` Most like head ${head.nearest.head} (${fixed(head.nearest.divergence, 3)} nats apart).` : "";
  const needed = measures.filter(({ parts }) => parts.length).flatMap((measure) => numbersOf(head, measure).map((value, part) => [value, measure.parts[part], measure.title]));
  if ((head.roles ?? []).some(({ role }) => role === "lookup")) return near.trim();
  if (needed.length) {
    const [most, part, title] = needed.reduce((best, each) => (each[0] > best[0] ? each : best));
    return `Reads ${part} most: ${fixed(most, 2)} (${title}).${near}`;
  }
  const kinds = measures.filter((measure) => measure.reads && (head.measures[measure.key] ?? 0) > 0.4).sort((a, b) => head.measures[b.key] - head.measures[a.key]);
  const told = kinds.length ? `Reads ${kinds[0].reads} most (${fixed(head.measures[kinds[0].key], 2)}).` : attention.site === "cross" ? "" : "No single pattern takes more than 0.4 of its weight.";
  return `${told}${near}`;
}

/** What can be said across seeds: heads have no identity there, so counts, means and extremes of runs. */
function acrossTable() {
  const known = (data.heads?.arms ?? []).filter(({ last }) => last);
  if (!known.length || known.every(({ last }) => last.runs < 2)) return null;
  const spread = (value) => (value ? `${fixed(value.mean, 3)} (${fixed(value.minimum, 3)} to ${fixed(value.maximum, 3)})` : "–");
  const row = (words, of) => [words, ...known.map(({ untrained, last }) => {
    const before = untrained && of(untrained);
    return [spread(of(last)), before ? el("span", { class: "before" }, `untrained ${fixed(before.mean, 3)}`) : ""];
  })];
  const rows = Object.keys(known[0].last.flags).map((flag) => row(`${flag} heads in a run`, (across) => across.flags[flag]));
  const seen = new Set();
  for (const measure of known.flatMap(({ measures }) => measures)) {
    if (seen.has(measure.key) || !known.some(({ last }) => last.measures[measure.key])) continue;
    seen.add(measure.key);
    const which = measure.across === "mean" ? "mean over heads" : "the greatest of a run's heads";
    const titles = measure.parts.length ? measure.parts : [measure.title];
    titles.forEach((title, part) => rows.push(row(`${title}, ${which}`, (across) => across.measures[measure.key]?.[part])));
  }
  rows.push(row("divergence between heads, nats", (across) => across.divergence));
  return el("div", {}, el("h3", {}, "Across seeds"),
    el("p", { class: "note" }, "Mean over the runs of an arm, and smallest to largest. Head 3 of one seed is not head 3 of another, so nothing is averaged by a head's number."),
    table("Heads across seeds", ["Measure", ...known.map(({ label }) => label)], rows));
}
