// Attention maps: from base64 to weights, from weights to colours.

const decoded = new Map();

/** The bytes of one head's maps. */
function bytesOf(base64) {
  if (!decoded.has(base64)) decoded.set(base64, Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0)));
  return decoded.get(base64);
}

/** Map `sample` of head `head`: {queries, keys, weight(query, key)}; a weight is null where reading is forbidden. */
function mapOf(maps, head, sample) {
  const bytes = bytesOf(maps.heads[head]);
  const { causal, queries, keys } = maps;
  const size = causal ? (queries * (queries + 1)) / 2 : queries * keys;
  const row = (query) => sample * size + (causal ? (query * (query + 1)) / 2 : query * keys);
  return { queries, keys, weight: (query, key) => (causal && key > query ? null : bytes[row(query) + key] / 255) };
}

/** Weight to colour, light to dark on a light page and dark to light on a dark one; even steps for every kind of eye. */
const RAMPS = {
  light: ["#f4f8fc", "#cfe1f2", "#93c4df", "#4b97c9", "#1c64a8", "#08306b"],
  dark: ["#131a26", "#1f3a5f", "#27629a", "#3d93bf", "#86c5c9", "#f5f3c6"],
};

function ramp() {
  const stops = (isDark() ? RAMPS.dark : RAMPS.light).map((hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
  return (share) => {
    const at = Math.min(1, Math.max(0, share)) * (stops.length - 1);
    const [from, part] = [Math.min(Math.floor(at), stops.length - 2), at - Math.min(Math.floor(at), stops.length - 2)];
    return stops[from].map((value, channel) => Math.round(value + part * (stops[from + 1][channel] - value)));
  };
}

/** A weight as a share of the ramp. The square root shows small weights, of which there are many. */
const strength = (weight, scaling) => (scaling === "linear" ? weight : Math.sqrt(weight));

/** Draws a map, one pixel a cell, on a canvas that the style sheet enlarges; forbidden cells stay clear. */
function paintMap(canvas, map, scaling) {
  canvas.width = map.keys;
  canvas.height = map.queries;
  const context = canvas.getContext("2d");
  const image = context.createImageData(map.keys, map.queries);
  const colours = ramp();
  for (let query = 0; query < map.queries; query++) {
    for (let key = 0; key < map.keys; key++) {
      const weight = map.weight(query, key);
      if (weight !== null) image.data.set([...colours(strength(weight, scaling)), 255], 4 * (query * map.keys + key));
    }
  }
  context.putImageData(image, 0, 0);
}

/** The legend: the ramp with its ends and middle. */
function rampLegend(scaling) {
  const canvas = el("canvas", { class: "ramp", width: 128, height: 1, role: "img", "aria-label": "colour scale of the weights, 0 to 1" });
  const context = canvas.getContext("2d");
  const colours = ramp();
  for (let x = 0; x < 128; x++) {
    context.fillStyle = `rgb(${colours(x / 127).join(",")})`;
    context.fillRect(x, 0, 1, 1);
  }
  return el("span", { class: "legend" }, "weight 0", canvas, scaling === "linear" ? "1, middle 0.5" : "1, middle 0.25");
}

/** A map as SVG cells, for saving: {x, y} its corner, `cell` its unit. */
function mapSvg(map, scaling, x, y, cell) {
  const colours = ramp();
  const cells = [svg("rect", { x, y, width: map.keys * cell, height: map.queries * cell, fill: colour("faint") })];
  for (let query = 0; query < map.queries; query++) {
    for (let key = 0; key < map.keys; key++) {
      const weight = map.weight(query, key);
      if (weight === null) continue;
      cells.push(svg("rect", { x: x + key * cell, y: y + query * cell, width: cell + 0.05, height: cell + 0.05, fill: `rgb(${colours(strength(weight, scaling)).join(",")})` }));
    }
  }
  return cells;
}
