// Light or dark, before anything is painted: what the reader chose last, else the system's.
{
  const query = matchMedia("(prefers-color-scheme: dark)");
  const KEY = "headcount-theme";
  /** A browser may keep nothing for a page from disk: then the choice lasts as long as the page. */
  const kept = () => { try { return localStorage.getItem(KEY); } catch { return null; } };
  const keep = (theme) => { try { localStorage.setItem(KEY, theme); } catch { /* it lasts as long as the page */ } };
  const root = document.documentElement;
  const apply = () => {
    const chosen = root.dataset.chosen ?? kept();
    root.dataset.theme = ["light", "dark"].includes(chosen) ? chosen : query.matches ? "dark" : "light";
    document.dispatchEvent(new Event("themechange"));
  };
  query.addEventListener("change", apply);
  document.addEventListener("themechosen", () => { keep(root.dataset.chosen); apply(); });
  apply();
}
