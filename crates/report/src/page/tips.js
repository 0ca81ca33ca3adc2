// What words mean, where they stand: shown by the pointer and by the keyboard, taken from the glossary.

let glossed = null;

/** The meaning of a word of the page, by the glossary; null where it has none. */
function explained(words) {
  glossed ??= new Map([...document.querySelectorAll("dl.glossary > div")].flatMap((entry) => {
    const [term, meaning] = [entry.querySelector("dt").textContent, entry.querySelector("dd").textContent];
    const names = [term, ...term.split(", "), ...(entry.dataset.terms?.split("|") ?? [])];
    return names.map((name) => [name.toLowerCase(), `${term}: ${meaning}`]);
  }));
  const plain = words.toLowerCase().trim();
  return glossed.get(plain) ?? glossed.get(plain.replace(/^(test|validation|training) /, "")) ?? glossed.get(plain.replace(/ [\d.]+$/, "")) ?? null;
}

/** One box for all of them: it stands by what it explains as long as the pointer or the focus is there. */
function startTips() {
  const box = el("div", { role: "tooltip", id: "tip", hidden: true });
  document.body.append(box);
  let shown = null;
  const hide = () => { shown?.removeAttribute("aria-describedby"); shown = null; box.hidden = true; };
  const show = (event) => {
    const node = event.target.closest?.("[data-tip]");
    if (!node || node === shown) return node ? null : hide();
    hide();
    shown = node;
    node.setAttribute("aria-describedby", "tip");
    box.textContent = node.dataset.tip;
    box.hidden = false;
    const at = node.getBoundingClientRect(), room = document.documentElement.clientWidth;
    box.style.left = `${Math.max(8, Math.min(at.left, room - box.offsetWidth - 8))}px`;
    const below = at.bottom + 6 + box.offsetHeight < innerHeight;
    box.style.top = `${below ? at.bottom + 6 : Math.max(4, at.top - box.offsetHeight - 6)}px`;
  };
  document.addEventListener("pointerover", show);
  document.addEventListener("focusin", show);
  document.addEventListener("focusout", hide);
  document.addEventListener("scroll", () => { if (shown && !shown.matches(":focus")) hide(); }, { capture: true, passive: true });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
}
