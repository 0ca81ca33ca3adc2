// The attention explorer: a grid of maps for one or two arms, at one step of the training, and one map large.

function explorerSection(section) {
  const mapped = headRuns.filter(({ analysis }) => analysis.steps.some((step) => step.attentions.some(({ maps }) => maps)));
  if (!mapped.length) return false;
  const steps = [...new Set(mapped.flatMap(({ analysis }) => analysis.steps.filter(hasMaps).map(({ step }) => step)))].sort((a, b) => a - b);
  const sites = [...new Set(mapped.flatMap(({ analysis }) => analysis.steps[0].attentions.map(({ site }) => site)))];
  // One run of each arm has the whole training, the others its end.
  const complete = arms.map((arm) => mapped.find((run) => run.arm === arm)).filter(Boolean);
  const pair = [complete[0], ...(complete.length > 1 ? [complete.at(-1)] : [])];
  const samples = pair.reduce((most, { analysis }) => (analysis.shown.length > most.length ? analysis.shown : most), []);
  /** The most wrong first: where the arms differ is what one wants to see. */
  const errors = (index) => pair.map((run) => [run, errorsOf(run, run.analysis.steps.findLast(hasMaps), index)]).filter(([, found]) => found);
  const order = samples.map((_, index) => index).sort((a, b) => errors(b).reduce((sum, [, { wrong }]) => sum + wrong, 0) - errors(a).reduce((sum, [, { wrong }]) => sum + wrong, 0));
  const sampleWords = (index) => `validation sample ${samples[index].index}${errors(index).map(([run, { wrong, of }], place) => `${place ? ", " : ": "}${run.arm.label} wrong at ${wrong} of ${of}`).join("")}`;
  const state = { step: steps.length - 1, sample: order[0] ?? 0, site: sites[0], scaling: "root", size: "one" };
  const sides = pair.map((run, index) => side(run, index, mapped, state, () => draw()));

  const told = el("output", { for: "map-step" });
  const slider = el("input", { type: "range", id: "map-step", min: 0, max: steps.length - 1, value: state.step, oninput: () => { state.step = Number(slider.value); draw(); } });
  const play = el("button", { type: "button", onclick: () => playing.toggle() }, "Play");
  const playing = player(play, () => { state.step = (state.step + 1) % steps.length; draw(); return state.step < steps.length - 1; });
  const legend = el("div");

  function draw() {
    const step = steps[state.step];
    const words = step === 0 ? "untrained" : `step ${whole(step)}`;
    slider.value = state.step;
    slider.setAttribute("aria-valuetext", words);
    told.textContent = words;
    legend.replaceChildren(rampLegend(state.scaling));
    for (const each of sides) each.draw(step);
  }

  section.append(
    el("div", { class: "controls" },
      el("label", { class: "slide" }, "Training", slider, told), play),
    el("div", { class: "controls" },
      picker("Sample", order.map((index) => [String(index), sampleWords(index)]), String(state.sample), (value) => { state.sample = Number(value); draw(); }),
      sites.length > 1 ? radios("site", "Attention", sites.map((site) => [site, SITES[site]]), state.site, (site) => { state.site = site; draw(); }) : null,
      radios("size", "Heads", [["one", "one large"], ["all", "all large"]], state.size, (size) => { state.size = size; draw(); }),
      radios("scaling", "Colour", [["root", "square root"], ["linear", "linear"]], state.scaling, (scaling) => { state.scaling = scaling; draw(); }),
      legend),
    el("div", { class: "sides" }, sides.map(({ node }) => node)));
  section.hidden = false;
  draw();
  document.addEventListener("themechange", draw);
  return true;
}

/** What stands for a model in short, such as "accuracy 0.981". */
const scoreWords = (scores) => `${usual.words} ${fixed(scores[usual.key], usual.digits)}`;

const hasMaps = (step) => step.attentions.some(({ maps }) => maps);

/** A button that advances until `advance` says that it was the end. */
function player(button, advance) {
  let timer = null;
  const stop = () => { clearInterval(timer); timer = null; button.textContent = "Play"; };
  return { toggle: () => {
    if (timer) return stop();
    button.textContent = "Pause";
    timer = setInterval(() => { if (!advance()) stop(); }, 700);
  } };
}

/** One arm: its grid and its large map. */
function side(first, index, mapped, state, redraw) {
  let run = first, [layer, head] = costliest(run);
  const title = el("h3", { "aria-live": "off" });
  const grid = el("div"), strip = el("div"), every = el("div");
  const large = largeMap(index, (query) => { chosen = query; beside(); });
  let chosen = null, beside = () => {};
  const choose = mapped.length > 2 ? picker(index === 0 ? "Left" : "Right", mapped.map((each, at) => [String(at), runWords(each)]), String(mapped.indexOf(first)), (value) => {
    run = mapped[Number(value)];
    [layer, head] = costliest(run);
    redraw();
  }) : null;
  const node = el("div", { class: "side" }, choose ? el("div", { class: "controls" }, choose) : el("div"), title, strip, grid, el("div", {}, every, large.node));

  function draw(step) {
    const at = run.analysis.steps.filter((each) => hasMaps(each) && each.step <= step).at(-1) ?? run.analysis.steps.find(hasMaps);
    const attentions = at.attentions.filter(({ site, maps }) => site === state.site && maps);
    title.textContent = `${runWords(run)}, ${at.step === 0 ? "untrained" : `after step ${whole(at.step)}`}: ${scoreWords(at)} on ${plural(run.analysis.samples, "sample")}`;
    layer = Math.min(layer, attentions.length - 1);
    if (!attentions.length) return grid.replaceChildren(el("p", { class: "note" }, "This model has no such attention."));
    head = Math.min(head, attentions[layer].maps.heads.length - 1);
    const sample = Math.min(state.sample, Math.max(0, run.analysis.shown.length - 1));
    const focused = grid.contains(document.activeElement);
    grid.replaceChildren(...attentions.map((attention, row) => [
      el("p", { class: "layer" }, `Layer ${attention.layer}`),
      el("div", { class: `heads${attention.maps.heads.length > 8 ? " many" : ""}${state.size === "all" ? " big" : ""}`, role: "group", "aria-label": `Heads of layer ${attention.layer}, ${runWords(run)}` },
        attention.maps.heads.map((_, column) => headButton(attention, row, column, step))),
    ]).flat());
    if (focused) grid.querySelector("[aria-pressed=true]").focus({ preventScroll: true });
    beside = () => {
      const picked = strip.contains(document.activeElement), left = strip.querySelector(".answers")?.scrollLeft ?? 0;
      strip.replaceChildren(state.site === "encoder" ? "" : answerStrip(run, at, sample, chosen, (query) => large.choose(query)));
      if (strip.querySelector(".answers")) strip.querySelector(".answers").scrollLeft = left;
      if (picked) strip.querySelector("[aria-pressed=true]")?.focus({ preventScroll: true });
      every.replaceChildren(everyHead(run, attentions[layer], sample, chosen, state));
    };
    large.draw(run, at, attentions[layer], head, { ...state, sample });
  }

  function headButton(attention, row, column, step) {
    const canvas = el("canvas", { class: "map", "aria-hidden": "true" });
    paintMap(canvas, mapOf(attention.maps, column, Math.min(state.sample, attention.maps.samples - 1)), state.scaling);
    const flags = attention.heads[column].flags;
    const roles = attention.heads[column].roles ?? [];
    const label = `Head ${column} of layer ${attention.layer}${[...roles.map(({ words }) => words), ...flags].map((words) => `, ${words}`).join("")}`;
    const pressed = row === layer && column === head;
    return el("button", {
      type: "button", "aria-pressed": String(pressed), "data-tip": label,
      onclick: () => { [layer, head] = [row, column]; draw(step); },
    }, canvas, el("span", {}, `${column}${flags.length ? " ⚑" : ""}`), el("span", { class: "unseen" }, label), roles.length ? el("small", {}, roles[0].words.replace(/^(looks up|reads) /, "")) : null);
  }
  return { node, draw };
}

/** What one query reads in every head of the layer, a row a head. */
function everyHead(run, attention, sample, query, { scaling, site }) {
  if (query === null) return "";
  const { maps } = attention, shown = run.analysis.shown[sample];
  const keys = site === "decoder" ? shown.tokens : shown.source;
  const rows = maps.heads.map((_, head) => {
    const map = mapOf(maps, head, Math.min(sample, maps.samples - 1));
    const canvas = el("canvas", { class: "map", "aria-hidden": "true" });
    paintMap(canvas, { keys: map.keys, queries: 1, weight: (_, key) => map.weight(query, key) }, scaling);
    const key = strongest(map, query);
    return el("div", { class: "row" }, el("span", {}, String(head)), canvas, el("span", { class: "before" }, `${key} (${keys[key]?.label ?? "?"}) ${fixed(map.weight(query, key), 2)}`));
  });
  const name = (site === "encoder" ? shown.source : shown.tokens)[query];
  return el("div", { class: "every" }, el("p", { class: "layer" }, `What position ${query} (${name?.label ?? "?"}) reads in each head of the layer, and most of all:`), rows);
}

/** Layer and number of the head whose removal costs most, to begin with. */
function costliest({ analysis }) {
  const all = analysis.steps.at(-1).attentions.filter(({ site }) => site === "decoder").flatMap(({ layer, heads }) => heads.map(({ measures }, head) => [measures.removal ?? -Infinity, layer, head]));
  const [, layer, head] = all.reduce((best, each) => (each[0] > best[0] ? each : best), [-Infinity, 0, 0]);
  return [layer, head];
}

const runWords = ({ arm, pair }) => `${arm.label}, seed ${pair}`;

/** The large map with tokens on both axes; the pointer or the arrow keys choose a cell, whose weight is told. */
function largeMap(index, onquery) {
  const canvas = el("canvas", { tabindex: 0, role: "img", "aria-describedby": `cell-${index}` });
  const readout = el("div", { class: "readout", id: `cell-${index}`, "aria-live": "polite" });
  let shown = null, cell = null;

  function draw(run, at, attention, head, state) {
    const sample = run.analysis.shown[state.sample];
    const answer = (query) => (attention.site === "encoder" ? null : answerAt(run, at, state.sample, query));
    const map = mapOf(attention.maps, head, state.sample);
    const queries = attention.site === "encoder" ? sample.source : sample.tokens;
    const keys = attention.site === "decoder" ? sample.tokens : sample.source;
    const name = `${runWords(run)}, layer ${attention.layer}, head ${head}, ${at.step === 0 ? "untrained" : `step ${at.step}`}`;
    shown = { map, queries, keys, scaling: state.scaling, name, answer };
    if (!cell || cell.query >= map.queries || cell.key >= map.keys) cell = firstCell(map, queries);
    canvas.setAttribute("aria-label", `Attention map of ${name}. The arrow keys move over its cells.`);
    paint();
  }

  function paint() {
    if (!shown || !canvas.clientWidth) return;
    const ratio = devicePixelRatio || 1;
    const { map, queries, keys, scaling } = shown;
    const layout = layoutOf(canvas.clientWidth, map);
    const height = Math.ceil(layout.top + map.queries * layout.cell + 1);
    canvas.style.height = `${height}px`;
    canvas.width = canvas.clientWidth * ratio;
    canvas.height = height * ratio;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    const small = el("canvas", {});
    paintMap(small, map, scaling);
    context.imageSmoothingEnabled = false;
    hatch(context, layout, map);
    context.drawImage(small, layout.left, layout.top, map.keys * layout.cell, map.queries * layout.cell);
    axisWords(context, layout, queries, keys, map);
    for (const [width, stroke] of [[5, colour("ground")], [2, colour("bad")]]) {
      context.lineWidth = width;
      context.strokeStyle = stroke;
      context.strokeRect(layout.left + cell.key * layout.cell, layout.top + cell.query * layout.cell, layout.cell, layout.cell);
    }
    tell();
  }

  function tell() {
    const { map, queries, keys } = shown;
    const { query, key } = cell;
    const word = (tokens, position) => `${position} (${tokens[position]?.label ?? "?"})`;
    const weight = map.weight(query, key);
    const answer = shown.answer(query), { target } = queries[query] ?? {};
    const asked = answer ? `, where ${answerWords(answer)},` : isAsked(queries[query]) ? `, scored, answer ${target},` : "";
    const best = Array.from({ length: map.keys }, (_, other) => [map.weight(query, other), other]).filter(([value]) => value).sort((a, b) => b[0] - a[0]).slice(0, 3);
    readout.replaceChildren(
      el("p", {}, `Position ${word(queries, query)}${asked} reads position ${word(keys, key)}: `,
        el("strong", {}, weight === null ? "forbidden" : fixed(weight, 3))),
      el("p", { class: "before" }, best.length ? `It reads most: ${best.map(([value, other]) => `${word(keys, other)} ${fixed(value, 2)}`).join(", ")}.` : "It reads nothing: padding."));
    onquery(query);
  }

  const move = (query, key) => {
    cell = { query: Math.min(shown.map.queries - 1, Math.max(0, query)), key: Math.min(shown.map.keys - 1, Math.max(0, key)) };
    paint();
  };
  const point = (event) => {
    if (!shown) return;
    const box = canvas.getBoundingClientRect();
    const layout = layoutOf(canvas.clientWidth, shown.map);
    const [key, query] = [Math.floor((event.clientX - box.left - layout.left) / layout.cell), Math.floor((event.clientY - box.top - layout.top) / layout.cell)];
    if (key >= 0 && query >= 0 && (key !== cell.key || query !== cell.query)) move(query, key);
  };
  canvas.addEventListener("pointermove", point);
  canvas.addEventListener("pointerdown", point);
  canvas.addEventListener("keydown", (event) => {
    const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!by || !shown) return;
    event.preventDefault();
    move(cell.query + by[0], cell.key + by[1]);
  });
  let width = 0;
  new ResizeObserver(() => { if (canvas.clientWidth !== width) { width = canvas.clientWidth; paint(); } }).observe(canvas);
  return { node: el("figure", { class: "large" }, canvas, readout, saveButtons(`${data.title}-attention-${index + 1}`, () => largeSvg(shown))), draw, choose: (query) => move(query, strongest(shown.map, query)) };
}

/** The cell that is shown first: of the last position where something is asked, else of the last that holds a token. */
function firstCell(map, queries) {
  const within = queries.slice(0, map.queries);
  const asked = within.findLastIndex(isAsked);
  const query = asked >= 0 ? asked : Math.max(0, within.findLastIndex((token) => !token.padding));
  return { query, key: strongest(map, query) };
}

/** The key that a query reads most. */
function strongest(map, query) {
  const weights = Array.from({ length: map.keys }, (_, key) => map.weight(query, key) ?? 0);
  return weights.indexOf(Math.max(...weights));
}

/** Room for the words of both axes, and the size of a cell. */
function layoutOf(width, map) {
  const [left, top] = [58, 64];
  return { left, top, cell: Math.min((width - left - 2) / map.keys, 34) };
}

/** The ground of cells that may not be read. */
function hatch(context, { left, top, cell }, map) {
  context.save();
  context.beginPath();
  context.rect(left, top, map.keys * cell, map.queries * cell);
  context.clip();
  context.fillStyle = colour("panel");
  context.fillRect(left, top, map.keys * cell, map.queries * cell);
  context.strokeStyle = colour("line");
  context.lineWidth = 1;
  context.beginPath();
  const reach = map.queries * cell;
  for (let x = left - reach; x < left + map.keys * cell; x += 8) {
    context.moveTo(x, top + reach);
    context.lineTo(x + reach, top);
  }
  context.stroke();
  context.restore();
}

/** Tokens along both axes, as many as are legible; scored positions in ink, others in grey. */
function axisWords(context, { left, top, cell }, queries, keys, map) {
  const size = Math.max(8.5, Math.min(12, cell * 0.8));
  const every = Math.max(1, Math.ceil((size + 1) / cell));
  context.font = `${size}px ${colour("mono")}`;
  context.textBaseline = "middle";
  context.textAlign = "right";
  for (let query = 0; query < map.queries; query += every) {
    context.fillStyle = colour(queries[query]?.target === null || queries[query]?.target === undefined ? "muted" : "ink");
    context.fillText(cut(queries[query]), left - 5, top + (query + 0.5) * cell);
  }
  context.fillStyle = colour("muted");
  for (let key = 0; key < map.keys; key += every) {
    context.save();
    context.translate(left + (key + 0.5) * cell, top - 5);
    context.rotate(-Math.PI / 2);
    context.textAlign = "left";
    context.fillText(cut(keys[key]), 0, 0);
    context.restore();
  }
  context.font = `11px ${colour("sans")}`;
  context.textAlign = "left";
  context.fillText("reads →", 2, 8);
  context.fillText("query ↓", 2, top - 8);
}

const cut = (token) => (!token ? "" : token.padding ? "·" : token.label.length > 7 ? `${token.label.slice(0, 6)}…` : token.label);

/** The large map as SVG. */
function largeSvg({ map, queries, keys, scaling, name }) {
  const [cell, left, top] = [16, 70, 96];
  const width = left + map.keys * cell + 16, height = top + map.queries * cell + 16;
  const small = { "font-size": 11, "font-family": "'DejaVu Sans Mono', monospace", fill: "var(--muted)" };
  const word = (token) => cut(token);
  return svg("svg", { viewBox: `0 0 ${Math.max(width, 520)} ${height}` }, solid([
    text(12, 24, name, { "font-size": 15, "font-weight": 600 }),
    text(12, 42, scaling === "linear" ? "weight 0 (light) to 1, linear" : "weight 0 to 1, square root", { "font-size": 12, fill: "var(--muted)" }),
    mapSvg(map, scaling, left, top, cell),
    queries.slice(0, map.queries).map((token, query) => text(left - 6, top + (query + 0.75) * cell, word(token), { ...small, "text-anchor": "end" })),
    keys.slice(0, map.keys).map((token, key) => text(0, 0, word(token), { ...small, transform: `translate(${left + (key + 0.75) * cell} ${top - 6}) rotate(-90)` })),
  ]));
}
