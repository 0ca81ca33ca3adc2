// Light or dark, before anything is painted: the reader's choice on this page, else the system's.
{
  const query = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    const chosen = document.documentElement.dataset.chosen;
    document.documentElement.dataset.theme = chosen || (query.matches ? "dark" : "light");
    document.dispatchEvent(new Event("themechange"));
  };
  query.addEventListener("change", apply);
  document.addEventListener("themechosen", apply);
  apply();
}
