// One forward pass, step by step: what a query goes through in every head, with the model's numbers and without some masks.

const decodedNumbers = new Map();

/** A tensor of the pass: {shape, values: Float32Array}. */
function tensor({ shape, values }) {
  if (!decodedNumbers.has(values)) {
    const bytes = Uint8Array.from(atob(values), (letter) => letter.charCodeAt(0));
    decodedNumbers.set(values, new Float32Array(bytes.buffer));
  }
  return { shape, values: decodedNumbers.get(values) };
}

/** A row of a tensor whose last dimension is a row, at the given places. */
function rowOf(numbers, ...places) {
  const { shape, values } = tensor(numbers);
  const width = shape.at(-1);
  const at = places.reduce((sum, place, dimension) => sum * shape[dimension] + place, 0);
  return values.subarray(at * width, (at + 1) * width);
}

function forwardSection(section) {
  const pass = data.forward;
  if (!pass?.passes[0]?.attentions.length) return false;
  const places = pass.passes[0].attentions.map(({ site, layer }, index) => [String(index), `${SITES[site]}, layer ${layer}`]);
  const removable = pass.masks.filter((mask) => pass.passes.some(({ without }) => without.includes(mask)));
  const state = { place: 0, off: new Set(), head: 0, query: 0, key: 0 };
  const strip = el("div"), steps = el("ol", { class: "steps" });
  const slider = el("input", { type: "range", id: "forward-query", min: 0, oninput: () => { state.query = Number(slider.value); state.key = null; draw(); } });
  const told = el("output", { for: "forward-query" });
  const keySlider = el("input", { type: "range", id: "forward-key", min: 0, oninput: () => { state.key = Number(keySlider.value); draw(); } });
  const keyTold = el("output", { for: "forward-key" });

  const current = () => pass.passes.find(({ without }) => without.length === state.off.size && without.every((mask) => state.off.has(mask)));
  const queriesOf = ({ site }) => (site === "encoder" ? pass.source : pass.tokens);
  const keysOf = ({ site }) => (site === "decoder" ? pass.tokens : pass.source);
  /** Whether the masks of the model keep a query from a key. */
  const isForbidden = ({ site }, query, key) => (site === "decoder" ? pass.masks.includes("causal") && key > query : keysOf({ site })[key].padding);
  const maskOf = ({ site }) => (site === "decoder" ? "causal" : "padding");

  function start() {
    const queries = queriesOf(current().attentions[state.place]);
    // Not at the end, where nothing is left for a causal mask to forbid.
    const late = queries.findIndex((token, position) => isAsked(token) && position >= 0.6 * queries.length);
    const asked = late >= 0 ? late : queries.findLastIndex(isAsked);
    state.query = asked >= 0 ? asked : queries.findLastIndex(({ padding }) => !padding);
    state.key = null;
  }

  function draw() {
    const attention = current().attentions[state.place], usual = pass.passes[0].attentions[state.place];
    const queries = queriesOf(attention), keys = keysOf(attention);
    const weights = (head) => rowOf(attention.maps, head, state.query);
    state.key ??= largestAt(weights(state.head));
    slider.max = queries.length - 1;
    slider.value = state.query;
    keySlider.max = keys.length - 1;
    keySlider.value = state.key;
    const word = (tokens, at) => `${at} (${tokens[at].label})`;
    told.textContent = word(queries, state.query);
    slider.setAttribute("aria-valuetext", `position ${word(queries, state.query)}`);
    keyTold.textContent = word(keys, state.key);
    keySlider.setAttribute("aria-valuetext", `position ${word(keys, state.key)}`);
    strip.replaceChildren(el("div", { class: "answers scroll", role: "group", tabindex: 0, "aria-label": "Tokens of the sample" }, queries.map((token, position) =>
      el("button", { type: "button", class: "answer unasked", "aria-pressed": String(position === state.query), onclick: () => { state.query = position; state.key = null; draw(); strip.querySelectorAll("button")[position].focus({ preventScroll: true }); } },
        el("span", {}, cut(token)), el("b", {}, String(position)), el("span", { class: "unseen" }, `Position ${word(queries, position)}`)))));
    steps.replaceChildren(...stepsOf(attention, usual, queries, keys));
  }

  const largestAt = (numbers) => numbers.reduce((best, value, index) => (value > numbers[best] ? index : best), 0);

  function stepsOf(attention, usual, queries, keys) {
    const { d_model: d, heads: h, kv_heads: g, d_head: k } = pass, [lq, lk] = [queries.length, keys.length];
    const { query, key, head } = state;
    const group = (each) => Math.floor(each / (h / g));
    const q = rowOf(attention.query, head, query), keyRow = rowOf(attention.key, group(head), key);
    const product = q.reduce((sum, value, index) => sum + value * keyRow[index], 0);
    const score = rowOf(attention.scores, head, query)[key], weight = rowOf(attention.maps, head, query)[key];
    const forbidden = keys.map((_, each) => isForbidden(attention, query, each));
    const isOn = !state.off.has(maskOf(attention));
    const each = (draw) => el("div", { class: "each-head" }, Array.from({ length: h }, (_, one) => el("figure", { class: one === head ? "chosen" : null },
      el("button", { type: "button", "aria-pressed": String(one === head), onclick: () => { state.head = one; draw_(one); } }, `head ${one}`), draw(one))));
    const draw_ = (one) => { state.key = null; const step = [...steps.children].findIndex((child) => child.contains(document.activeElement)); draw(); steps.children[step]?.querySelectorAll(".each-head button")[one]?.focus({ preventScroll: true }); };
    const lost = forbidden.filter(Boolean).length;
    const shape = (...words) => el("code", {}, words.join(" → "));
    const step = (title, shapes, ...body) => el("li", {}, el("h3", {}, title), shapes, ...body);
    const chosen = (...words) => el("p", { class: "says" }, ...words);
    const largest = largestAt(rowOf(attention.maps, head, query));
    return [
      step("Input", shape(`[B, L, D] = [1, ${lq}, ${d}]`), chosen(`Position ${query} (${queries[query].label}) comes in as ${d} numbers: its token and its place, normalised.`), heat(rowOf(attention.input, query), `input of position ${query}`)),
      step("Queries, keys and values", shape(`Q [1, ${lq}, ${h * k}]`, `[B, H, L, K] = [1, ${h}, ${lq}, ${k}]`, `K, V [1, ${g}, ${lk}, ${k}]`),
        chosen(`Each head has its own ${k} columns. Above: what this position asks with; below: the keys of all positions, a row each.`),
        each((one) => [heat(rowOf(attention.query, one, query), `query of head ${one}`), heatGrid(attention.key, group(one), key, `keys of head ${one}`)])),
      step("Scores", shape(`Q · Kᵀ [1, ${h}, ${lq}, ${lk}]`, `× 1/√K = × ${fixed(pass.scale, 4)}`),
        chosen(`Head ${head}, key ${key}: query · key = `, el("strong", {}, fixed(product, 3)), `, scaled `, el("strong", { class: "score" }, fixed(score, 3)), "."),
        each((one) => heat(rowOf(attention.scores, one, query), `scores of head ${one}`, [], key))),
      step("Mask", shape(`[${lq}, ${lk}]`),
        chosen(lost === 0 ? "This query may read every key." : `The ${maskOf(attention)} mask keeps it from ${plural(lost, "key")}: ${isOn ? "their scores become −∞ before the softmax." : "it is switched off, so they are read like any other."}`),
        each((one) => heat(rowOf(attention.scores, one, query), `scores of head ${one} ${isOn ? "after the mask" : "without the mask"}`, isOn ? forbidden : [], key))),
      step("Softmax", shape(`[1, ${h}, ${lq}, ${lk}]`),
        chosen(`Head ${head} gives key ${key} the weight `, el("strong", { class: "weight" }, fixed(weight, 4)), ". Every row sums to 1."),
        each((one) => { const row = rowOf(attention.maps, one, query); return [bars(row, `weights of head ${one}`, forbidden, key), el("figcaption", {}, `sum ${fixed(row.reduce((sum, value) => sum + value, 0), 4)}`)]; })),
      step("Weighted sum of the values", shape(`weights · V [1, ${h}, ${lq}, ${k}]`),
        chosen(`Head ${head} mostly hands over the value of position ${largest} (${keys[largest].label}).`),
        each((one) => heat(rowOf(attention.context, one, query), `context of head ${one}`))),
      step("Side by side, and out", shape(`[1, ${lq}, ${h} · ${k}]`, `· W_O`, `[1, ${lq}, ${d}]`), chosen("The contexts of all heads, one after the other, times the output projection."), heat(rowOf(attention.output, query), `output at position ${query}`)),
      step("Answer", "", ...answer(attention, usual, queries, forbidden)),
    ];
  }

  /** What the model says at the query, and what came through where a mask is off. */
  function answer(attention, usual, queries, forbidden) {
    const body = [];
    if (attention.site !== "encoder" && isAsked(queries[state.query])) {
      const place = pass.tokens.slice(0, state.query).filter(isAsked).length;
      const target = queries[state.query].target, list = current().answers[place], before = pass.passes[0].answers[place];
      body.push(el("p", { class: "says" }, capital(answerWords({ target, told: list, isRight: list[0][0] === target })), "."));
      if (state.off.size) body.push(el("p", { class: "says" }, `With all masks ${answerWords({ target, told: before, isRight: before[0][0] === target })}.`));
      body.push(el("div", { class: "chances" }, list.map(([what, share]) => el("div", { class: what === target ? "right" : null }, el("span", {}, `${what}${what === target ? " (right)" : ""}`), el("span", { class: "bar", style: { width: `${Math.max(1, 100 * share)}%` } }), el("span", {}, fixed(share, 3))))));
    } else body.push(el("p", { class: "says" }, "Nothing is asked at this position."));
    if (state.off.size) {
      const leaked = Array.from({ length: pass.heads }, (_, head) => rowOf(attention.maps, head, state.query).reduce((sum, value, key) => sum + (forbidden[key] ? value : 0), 0));
      const [own, other] = [attention.output, usual.output].map((numbers) => tensor(numbers).values);
      const moved = own.reduce((most, value, index) => Math.max(most, Math.abs(value - other[index])), 0);
      const targets = pass.tokens.filter(isAsked).map(({ target }) => target);
      const right = ({ answers }) => answers.filter((list, index) => list[0][0] === targets[index]).length;
      body.push(el("p", { class: "leak" }, `Leak: the heads put ${fixed(leaked.reduce((sum, value) => sum + value, 0) / leaked.length, 3)} of their weight on keys that the mask forbids; the output of this attention moves by up to ${fixed(moved, 3)}; ${right(current())} of ${targets.length} answers are right, ${right(pass.passes[0])} with all masks. In training a model would learn from what leaks, and its loss would be abnormally low.`));
    }
    return body;
  }

  section.append(
    el("p", { class: "note" }, `Validation sample ${pass.sample} of ${pass.task}, ${pass.step === 0 ? "untrained" : `after step ${whole(pass.step)}`}. Colours: blue above 0, orange below; hatched: forbidden.`),
    el("div", { class: "controls" },
      places.length > 1 ? picker("Attention", places, "0", (value) => { state.place = Number(value); start(); draw(); }) : null,
      removable.length ? el("fieldset", {}, el("legend", {}, "Masks"), removable.map((mask) => choice("checkbox", mask, true, (on) => { on ? state.off.delete(mask) : state.off.add(mask); draw(); }, { "aria-label": `${mask} mask`, name: `mask-${mask}` }))) : null),
    el("div", { class: "controls" }, el("label", { class: "slide" }, "Query", slider, told), el("label", { class: "slide" }, "Key", keySlider, keyTold)),
    strip, steps);
  section.hidden = false;
  start();
  draw();
  document.addEventListener("themechange", draw);
  return true;
}

/** Above 0 blue, below orange, by size. */
function signedColour(value, most) {
  const share = Math.min(1, Math.abs(value) / (most || 1)) ** 0.7;
  const [ground, ink] = isDark() ? [[24, 31, 39], value < 0 ? [255, 160, 90] : [90, 180, 255]] : [[245, 247, 249], value < 0 ? [190, 80, 0] : [11, 92, 173]];
  return ground.map((from, channel) => Math.round(from + share * (ink[channel] - from)));
}

/** Numbers as a strip of cells; those that are forbidden stay clear, `marked` has a line under it. */
function heat(numbers, words, forbidden = [], marked = null) {
  const canvas = el("canvas", { class: "map strip", width: numbers.length, height: 1, role: "img", "aria-label": `${words}: ${[...numbers].slice(0, 8).map((value) => fixed(value, 2)).join(", ")}${numbers.length > 8 ? " …" : ""}` });
  paint(canvas, [numbers], forbidden);
  return el("div", { class: "marked" }, canvas, marked === null ? null : el("i", { style: { left: `${(100 * (marked + 0.5)) / numbers.length}%` } }));
}

/** All rows of one head of a tensor `[heads, rows, width]`. */
function heatGrid(numbers, head, marked, words) {
  const { shape: [, rows, width] } = tensor(numbers);
  const canvas = el("canvas", { class: "map grid", width, height: rows, role: "img", "aria-label": `${words}, ${rows} rows of ${width} numbers` });
  paint(canvas, Array.from({ length: rows }, (_, row) => rowOf(numbers, head, row)), []);
  return el("div", { class: "marked" }, canvas, el("u", { style: { top: `${(100 * (marked + 0.5)) / rows}%` } }));
}

function paint(canvas, rows, forbidden) {
  const context = canvas.getContext("2d"), image = context.createImageData(canvas.width, canvas.height);
  const most = rows.reduce((most, row) => row.reduce((most, value) => Math.max(most, Math.abs(value)), most), 0);
  rows.forEach((row, y) => row.forEach((value, x) => { if (!forbidden[x]) image.data.set([...signedColour(value, most), 255], 4 * (y * canvas.width + x)); }));
  context.putImageData(image, 0, 0);
}

/** Weights as bars; where a key is forbidden and read all the same, the bar says so. */
function bars(weights, words, forbidden, marked) {
  const width = weights.length * 4;
  return svg("svg", { class: "bars", viewBox: `0 0 ${width} 40`, preserveAspectRatio: "none", role: "img", "aria-label": words },
    [...weights].map((weight, key) => [
      forbidden[key] ? svg("rect", { x: key * 4, y: 0, width: 4, height: 40, fill: "var(--faint)" }) : [],
      svg("rect", { x: key * 4 + 0.4, y: 40 - 40 * weight, width: 3.2, height: 40 * weight, fill: forbidden[key] ? "var(--bad)" : key === marked ? "var(--good)" : "var(--accent)" })]));
}
