// Puts the page together: first what is seen first, the maps after the first paint.

/** Where it goes, what it is called in the list of contents, and what makes it. */
const SECTIONS = [
  ["curves", "Curves", curvesSection], ["differences", "Differences", differencesSection], ["settings", "Settings", settingsSection], ["ledger", "Matching", ledgerSection],
  ["forward", "Step by step", forwardSection], ["explorer", "Attention", explorerSection], ["cards", "Heads", cardsSection], ["stability", "Stability", stabilitySection], ["tables", "Tables", tablesSection], ["repeat", "Repeat", repeatSection], ["prediction", "Prediction", predictionSection],
];

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
  startTips();
  verdictSection(byId("verdict"));
  const nav = byId("contents");
  const link = (id, words) => nav.append(el("a", { href: `#${id}` }, words));
  link("verdict", byId("verdict-title").textContent);
  const rest = [...SECTIONS];
  const next = () => {
    const each = rest.shift();
    if (!each) {
      link("glossary", "Glossary");
      document.documentElement.dataset.ready = "true";
      return;
    }
    const [id, words, build] = each;
    if (build(byId(id)) !== false) link(id, words);
    // One part a turn, so that the page answers while the rest is made.
    setTimeout(next);
  };
  nav.hidden = false;
  setTimeout(next);
}

start();
