// Figures that the page was written with: the same as the files in figures/, each drawn once.

/** Shows a section that holds figures and gives each its buttons. */
function figuresSection(section) {
  const drawn = [...section.querySelectorAll("figure.drawn")];
  for (const node of drawn) node.append(saveButtons(`${data.title}-${node.dataset.name}`, () => node.querySelector("svg")));
  section.hidden = !drawn.length;
  return drawn.length > 0;
}

/** The same with every number. */
function differencesSection(section) {
  if (!figuresSection(section)) return false;
  const rows = results.verdicts.flatMap(({ found }) => found.pairs.map((pair) => [
    `${found.arm.name}, seed ${pair.seed}`, pair.arm_diverged ? "diverged" : fixed(pair.arm), pair.baseline_diverged ? "diverged" : fixed(pair.baseline), signed(pair.arm - pair.baseline)]));
  section.append(el("details", {}, el("summary", {}, "Every difference as a number"),
    table("Paired differences", ["Pair", "arm", "baseline", "difference"], rows)));
  return true;
}
