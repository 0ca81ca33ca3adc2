// Every figure can be taken along: as SVG, and as PNG drawn from that SVG.

/** Buttons that save what `draw` returns, an SVG element with a viewBox, under `name`. */
function saveButtons(name, draw) {
  const button = (kind, act) => el("button", { type: "button", "aria-label": `Save this figure as ${kind}`, onclick: act }, kind);
  // What was changed just now is drawn with the next frame.
  const drawn = () => new Promise((done) => requestAnimationFrame(() => done(draw())));
  return el("div", { class: "save" }, "Save as",
    button("SVG", async () => download(`${name}.svg`, new Blob([svgText(await drawn())], { type: "image/svg+xml" }))),
    button("PNG", async () => download(`${name}.png`, await png(await drawn()))));
}

function download(name, blob) {
  const address = URL.createObjectURL(blob);
  const link = el("a", { href: address, download: fileName(name) });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

const fileName = (name) => name.replace(/[^\w.-]+/g, "-");

const PRESENTED = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "font-size", "font-weight", "text-anchor", "paint-order", "opacity"];

/** An SVG of the page as a document of its own: colours of the style sheet become values, the ground is filled. */
function standalone(drawn) {
  const [, , width, height] = drawn.getAttribute("viewBox").split(" ").map(Number);
  const copy = drawn.cloneNode(true);
  if (drawn.isConnected) {
    const [from, to] = [drawn, copy].map((root) => [...root.querySelectorAll("*")]);
    from.forEach((node, index) => {
      const style = getComputedStyle(node);
      for (const property of PRESENTED) to[index].setAttribute(property, style.getPropertyValue(property));
    });
  }
  for (const [name, value] of Object.entries({ width, height, "font-family": "'DejaVu Sans', Verdana, Arial, sans-serif" })) copy.setAttribute(name, value);
  copy.prepend(svg("rect", { width, height, fill: colour("ground") }));
  return { copy, width, height };
}

function svgText(drawn) {
  return new XMLSerializer().serializeToString(standalone(drawn).copy);
}

/** A PNG of twice the size. */
async function png(drawn) {
  const { copy, width, height } = standalone(drawn);
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" }));
  await image.decode();
  const canvas = el("canvas", { width: 2 * width, height: 2 * height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

/** A figure: what is drawn, a caption that says it in words, and its buttons. */
function figure(name, caption, body, draw) {
  return el("figure", {}, body, el("figcaption", {}, caption), draw && saveButtons(`${data.title}-${name}`, draw));
}
