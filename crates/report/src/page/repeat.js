// How to repeat it: the commands, the file, and what computed.

function repeatSection(section) {
  const { file, machines } = data.context;
  const programs = machines.map(({ program }) => program);
  const commits = [...new Set(programs.map(({ commit }) => commit).filter(Boolean))];
  const commands = [
    commits.length === 1 ? `git checkout ${commits[0]}` : null,
    data.context.command,
  ].filter(Boolean).join("\n");
  section.append(
    el("p", { class: "note" }, machines.length ? `Save ${file.name} below, take the sources of Headcount ${[...new Set(programs.map(({ version }) => version))].join(" or ")} at the commit, and run:` : `Save ${file.name} below and run:`),
    el("pre", { tabindex: 0, "aria-label": "commands" }, commands));
  section.append(el("p", { class: "note" }, "How to cite Headcount stands in CITATION.cff in its sources; any table above is saved as LaTeX, Markdown or CSV by the buttons below it."));
  if (commits.length > 1) section.append(el("p", { class: "note" }, `The runs are of ${commits.length} commits, listed below: each run is repeated with its own.`));
  if (programs.some(({ dirty }) => dirty)) section.append(el("p", { class: "note" }, "The sources had changes on top of the commit, which it does not hold."));
  if (file.text) {
    section.append(
      el("details", {}, el("summary", {}, `${file.name}, in full`), el("pre", { tabindex: 0, "aria-label": file.name }, file.text)),
      el("div", { class: "save" }, el("button", { type: "button", onclick: () => download(file.name, new Blob([file.text], { type: "text/plain" })) }, `Save ${file.name}`)));
  }
  if (machines.length) {
    section.append(
      el("h3", {}, "What computed"),
      table("What computed", ["Program", "backend", "device", "threads of a run", "runs"], machines.map(({ program, backend, device, threads, runs }) => [programWords(program), backend, device, whole(threads), whole(runs)]), [1, 2]),
      el("p", { class: "note" }, "On one machine and a CPU backend (flex, ndarray) the same file and seeds give the same bytes; on a GPU the results agree within small tolerances."));
  }
  section.hidden = false;
  return true;
}
