// Elements, numbers and words. Data reaches the page as text only.

/** An element; strings among the children become text, functions under `on…` listeners. */
function el(tag, properties = {}, ...children) {
  return filled(document.createElement(tag), properties, children);
}

/** The same for SVG. */
function svg(tag, properties = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);
}

function filled(node, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, text] of Object.entries(value)) node.style.setProperty(key, text);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

const byId = (id) => document.getElementById(id);

/** The value of a colour of the style sheet in the present theme. */
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

const isDark = () => document.documentElement.dataset.theme === "dark";

const minus = (text) => text.replace("-", "−");

/** A number with so many decimals; a dash where there is none. */
function fixed(value, digits = 4) {
  if (value === null || value === undefined) return "–";
  const text = value.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : minus(text);
}

/** A number with its sign. */
const signed = (value, digits = 4) => (Number(value.toFixed(digits)) > 0 ? "+" : "") + fixed(value, digits);

/** A whole number with its thousands apart. */
const whole = (value) => value === null || value === undefined ? "–" : minus(String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ","));

/** A number as short as three digits allow. */
function short(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e4 && size < 1e6) return minus(`${+(value / 1e3).toPrecision(3)}k`);
  if (size >= 1e6 && size < 1e9) return minus(`${+(value / 1e6).toPrecision(3)}M`);
  if (size >= 1e9 || size < 1e-4) return minus(value.toExponential(1).replace(/\.0(?=e)/, "").replace("e+", "e"));
  return minus(String(+value.toPrecision(3)));
}

/** A p value: never 0. */
const probability = (p) => (p < 1e-4 ? "< 0.0001" : fixed(p, p < 0.01 ? 4 : 3));

const plural = (count, word) => `${whole(count)} ${word}${count === 1 ? "" : "s"}`;

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** A labelled checkbox or radio button. */
function choice(type, label, checked, onchange, extra = {}) {
  const input = el("input", { type, ...extra, onchange: () => onchange(input.checked) });
  input.checked = checked;
  return el("label", {}, input, label);
}

/** A row of radio buttons; `options` are [value, words]. */
function radios(name, legend, options, chosen, onchange) {
  const buttons = options.map(([value, words]) => choice("radio", words, value === chosen, () => onchange(value), { name, value }));
  return el("fieldset", {}, el("legend", {}, legend), buttons);
}

/** A labelled list to choose from; `options` are [value, words]. */
function picker(label, options, chosen, onchange) {
  const list = el("select", { onchange: () => onchange(list.value) }, options.map(([value, words]) => el("option", { value }, words)));
  list.value = chosen;
  return el("label", {}, label, list);
}
