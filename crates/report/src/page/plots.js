// One panel of learning curves, drawn by uPlot, and the same as SVG.

const HEIGHT = 320;

/**
 * A panel in `host`. `lines` are {arm, x, y, width, opacity, dash, band: {low, high} or null}; null in y is a gap.
 * Calls `onread(x)` as the pointer moves, x being the nearest of `stops`: where values were measured.
 */
function panel(host, { lines, logX, logY, xLabel, yLabel, level, stops, onread }) {
  const tables = [], series = [{}], bands = [];
  for (const line of lines) {
    const keep = line.x.map((value) => !logX || value > 0);
    const column = (values) => values.filter((_, index) => keep[index]).map((value) => (value === null || (logY && value <= 0) ? null : value));
    const x = line.x.filter((_, index) => keep[index]);
    if (line.band) {
      tables.push([x, column(line.band.high), column(line.band.low), column(line.y)]);
      bands.push({ series: [series.length, series.length + 1], fill: faded(armColour(line.arm), 0.18) });
      series.push({ stroke: "transparent", points: { show: false } }, { stroke: "transparent", points: { show: false } });
    } else tables.push([x, column(line.y)]);
    series.push({ stroke: faded(armColour(line.arm), line.opacity), width: line.width, dash: line.dash, points: { show: x.length < 2 } });
  }
  const values = tables.length ? uPlot.join(tables) : [[]];
  const axis = { stroke: colour("muted"), grid: { stroke: colour("faint"), width: 1 }, ticks: { stroke: colour("line"), size: 5 }, font: `12px ${colour("sans")}`, labelFont: `13px ${colour("sans")}`, labelGap: 4 };
  const marks = (log, count) => (log ? { splits: (_, __, low, high) => ticks(low, high, count, true), filter: (_, splits) => splits } : {});
  const tight = (log) => (log ? { distr: 3, range: (_, low, high) => (low > 0 && high > 0 ? [low / 1.08, high * 1.08] : [0.1, 10]) } : {});
  const named = (_, splits) => splits.map((value) => short(value));
  const stopAt = (plot, left) => stops[closest(stops.map((stop) => (logX && stop <= 0 ? -Infinity : plot.valToPos(stop, "x"))), left)];
  const options = {
    width: Math.max(240, host.clientWidth), height: HEIGHT, legend: { show: false }, series, bands,
    padding: [12, 12, 0, 0],
    scales: {
      x: { time: false, ...tight(logX) },
      y: logY ? tight(true) : { range: (_, low, high) => (low === null ? [0, 1] : padded(low, high)) },
    },
    axes: [
      { ...axis, label: xLabel, size: 38, labelSize: 22, values: named, ...marks(logX, 5) },
      { ...axis, label: yLabel, size: 52, labelSize: 22, values: named, ...marks(logY, 5) },
    ],
    cursor: { y: false, move: (plot, left, top) => [left < 0 || !stops.length ? left : plot.valToPos(stopAt(plot, left), "x"), top], points: { show: false }, drag: { x: false, y: false } },
    hooks: {
      setCursor: [(plot) => { if (plot.cursor.left >= 0 && plot.cursor.event) onread(stopAt(plot, plot.cursor.left)); }],
      draw: [(plot) => drawLevel(plot, level), (plot) => drawMarks(plot, lines)],
    },
  };
  const plot = new uPlot(options, values, host);
  plot.lines = lines;
  plot.level = level;
  plot.labels = { xLabel, yLabel };
  return plot;
}

/** Whole bands with a little room; what is never below 0 does not show less. */
function padded(low, high) {
  const reach = 0.04 * (high - low || Math.abs(high) || 1);
  return [low >= 0 ? Math.max(0, low - reach) : low - reach, high + reach];
}

const faded = (rgb, opacity) => rgb.replace("rgb(", "rgba(").replace(")", `, ${opacity})`);

/** The marks of the arms that have one, on their mean lines. */
function drawMarks(plot, lines) {
  const { ctx } = plot;
  const size = 4 * devicePixelRatio;
  for (const { arm, x, y } of lines.filter(({ arm, pair }) => pair === undefined && arm.mark !== "none")) {
    ctx.fillStyle = armColour(arm);
    for (const index of markedPoints(x.length).filter((index) => y[index] !== null && (plot.scales.x.distr !== 3 || x[index] > 0))) {
      const [left, top] = [plot.valToPos(x[index], "x", true), plot.valToPos(y[index], "y", true)];
      ctx.beginPath();
      if (arm.mark === "circle") ctx.arc(left, top, size, 0, 2 * Math.PI);
      else ctx.rect(left - size, top - size, 2 * size, 2 * size);
      ctx.fill();
    }
  }
}

/** A dashed line across, such as the threshold at which a run solved the task. */
function drawLevel(plot, level) {
  if (!level || level.value < plot.scales.y.min || level.value > plot.scales.y.max) return;
  const { ctx, bbox } = plot;
  const y = plot.valToPos(level.value, "y", true);
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = colour("muted");
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([5 * devicePixelRatio, 4 * devicePixelRatio]);
  ctx.beginPath();
  ctx.moveTo(bbox.left, y);
  ctx.lineTo(bbox.left + bbox.width, y);
  ctx.stroke();
  ctx.textAlign = "left";
  ctx.textBaseline = "alphabetic";
  ctx.font = `${11 * devicePixelRatio}px ${colour("sans")}`;
  ctx.fillText(level.words, bbox.left + 6 * devicePixelRatio, y - 5 * devicePixelRatio);
  ctx.restore();
}

/** Panels side by side as one SVG, with a title and the arms' names; each panel as it stands on the page. */
function plotsSvg(title, plots, shownArms) {
  const widths = plots.map(({ plot }) => plot.width);
  const width = widths.reduce((sum, each) => sum + each + 20, 20);
  const parts = [text(20, 28, title, { "font-size": 18, "font-weight": 600 })];
  let [left, row] = [20, 54];
  for (const arm of shownArms) {
    const room = 44 + arm.label.length * 7.6;
    if (left + room > width && left > 20) [left, row] = [20, row + 22];
    parts.push(svg("line", { x1: left, x2: left + 24, y1: row - 4, y2: row - 4, stroke: armColour(arm), "stroke-width": 3, "stroke-dasharray": arm.dash || "none" }), ...markAt(arm, left + 12, row - 4, 4));
    parts.push(text(left + 30, row, arm.label));
    left += room;
  }
  let at = 20;
  for (const { plot, words } of plots) {
    parts.push(svg("g", { transform: `translate(${at} ${row + 16})` }, plotParts(plot, words)));
    at += plot.width + 20;
  }
  return svg("svg", { viewBox: `0 0 ${width} ${row + HEIGHT + 50}`, fill: "none" }, solid(parts));
}

/** Colours of the style sheet as values, for a drawing that is not on the page. */
function solid(nodes) {
  const named = (value) => value.replace(/var\(--(\w+)\)/g, (_, name) => colour(name));
  const all = nodes.flat(Infinity);
  for (const node of all.flatMap((node) => [node, ...node.querySelectorAll("*")])) {
    for (const name of ["fill", "stroke"]) if (node.hasAttribute(name)) node.setAttribute(name, named(node.getAttribute(name)));
  }
  return all;
}

function plotParts(plot, words) {
  const { left, top, width, height } = Object.fromEntries(Object.entries(plot.bbox).map(([name, value]) => [name, value / devicePixelRatio]));
  const x = (value) => left + plot.valToPos(value, "x"), y = (value) => top + 16 + plot.valToPos(value, "y");
  const bottom = top + 16 + height;
  const parts = [text(left, 12, words, { "font-weight": 600 })];
  for (const tick of plot.axes[0]._splits ?? []) {
    parts.push(svg("line", { x1: x(tick), x2: x(tick), y1: top + 16, y2: bottom, stroke: "var(--faint)" }));
    parts.push(text(x(tick), bottom + 18, short(tick), { "text-anchor": "middle", "font-size": 12, fill: "var(--muted)" }));
  }
  for (const tick of plot.axes[1]._splits ?? []) {
    parts.push(svg("line", { x1: left, x2: left + width, y1: y(tick), y2: y(tick), stroke: "var(--faint)" }));
    parts.push(text(left - 7, y(tick) + 4, short(tick), { "text-anchor": "end", "font-size": 12, fill: "var(--muted)" }));
  }
  const fits = (at, value) => value !== null && value !== undefined && (plot.scales.x.distr !== 3 || at > 0) && (plot.scales.y.distr !== 3 || value > 0);
  const points = (xs, ys) => xs.flatMap((at, index) => (fits(at, ys[index]) ? [`${x(at).toFixed(1)},${y(ys[index]).toFixed(1)}`] : []));
  for (const { arm, x: xs, band } of plot.lines.filter(({ band }) => band)) {
    parts.push(svg("polygon", { points: [...points(xs, band.high), ...points(xs, band.low).reverse()].join(" "), fill: armColour(arm), "fill-opacity": 0.18, stroke: "none" }));
  }
  for (const { arm, pair, x: xs, y: ys, width: thick, opacity, dash } of plot.lines) {
    if (pair === undefined) parts.push(...markedPoints(xs.length).filter((index) => fits(xs[index], ys[index])).flatMap((index) => markAt(arm, x(xs[index]), y(ys[index]), 4)));
    parts.push(svg("polyline", { points: points(xs, ys).join(" "), fill: "none", stroke: armColour(arm), "stroke-width": thick, "stroke-opacity": opacity, "stroke-dasharray": dash?.join(" ") ?? "none" }));
  }
  if (plot.level && plot.level.value >= plot.scales.y.min && plot.level.value <= plot.scales.y.max) {
    const at = y(plot.level.value);
    parts.push(svg("line", { x1: left, x2: left + width, y1: at, y2: at, stroke: "var(--muted)", "stroke-dasharray": "5 4" }));
    parts.push(text(left + 6, at - 5, plot.level.words, { "font-size": 11, fill: "var(--muted)" }));
  }
  parts.push(text(left + width / 2, bottom + 38, plot.labels.xLabel, { "text-anchor": "middle", fill: "var(--muted)" }));
  const middle = top + 16 + height / 2;
  parts.push(text(12, middle, plot.labels.yLabel, { "text-anchor": "middle", fill: "var(--muted)", transform: `rotate(-90 12 ${middle})` }));
  return parts;
}
