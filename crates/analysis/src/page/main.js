// Puts the page together: first what is seen first, the maps after the first paint.

const SECTIONS = [["curves", curvesSection], ["differences", differencesSection], ["lines", gridSection], ["ledger", ledgerSection], ["explorer", explorerSection],
  ["cards", cardsSection], ["stability", stabilitySection], ["tables", tablesSection], ["repeat", repeatSection]];

function start() {
  const button = byId("theme");
  const label = () => { button.textContent = isDark() ? "Light" : "Dark"; button.setAttribute("aria-label", `Switch to the ${isDark() ? "light" : "dark"} theme`); };
  button.addEventListener("click", () => {
    document.documentElement.dataset.chosen = isDark() ? "light" : "dark";
    document.dispatchEvent(new Event("themechosen"));
    label();
  });
  document.addEventListener("themechange", label);
  label();
  verdictSection(byId("verdict"));
  const nav = byId("contents");
  const link = (id) => nav.append(el("a", { href: `#${id}` }, byId(`${id}-title`).textContent));
  link("verdict");
  const rest = [...SECTIONS];
  const next = () => {
    const each = rest.shift();
    if (!each) {
      link("glossary");
      document.documentElement.dataset.ready = "true";
      return;
    }
    const [id, build] = each;
    if (build(byId(id)) !== false) link(id);
    // One part a turn, so that the page answers while the rest is made.
    setTimeout(next);
  };
  nav.hidden = false;
  requestAnimationFrame(() => setTimeout(next));
}

start();
