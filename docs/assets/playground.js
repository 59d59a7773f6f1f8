// The playground's page. The linter itself runs in playground-worker.js.
(function () {
  const box = document.querySelector(".playground");
  if (!box) return;
  const assets = new URL(".", document.currentScript.src);
  const base = new URL("playground/", assets).href;
  const area = box.querySelector("textarea");
  const list = box.querySelector("ol");
  const state = box.querySelector("output");
  const button = box.querySelector("button");
  const input = (name) => box.querySelector(`[name=${name}]`);
  let worker, settings, timer, ready = false, asked = 0;

  const element = (name, text, kind) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (kind) made.className = kind;
    return made;
  };

  // Columns count characters of Python; strings here count UTF-16 units.
  const offset = ({ row, column }) => {
    const lines = area.value.split("\n");
    const before = lines.slice(0, row - 1).reduce((sum, line) => sum + line.length + 1, 0);
    return before + [...(lines[row - 1] ?? "")].slice(0, column - 1).join("").length;
  };

  const go = (from, to) => {
    area.focus();
    area.setSelectionRange(offset(from), offset(to));
    const height = area.scrollHeight / area.value.split("\n").length;
    area.scrollTop = Math.max(0, (from.row - 4) * height);
  };

  const place = (step) => {
    const link = element("button", `line ${step.location.row}`, "playground-place");
    link.type = "button";
    link.addEventListener("click", () => go(step.location, step.end_location));
    return link;
  };

  const apply = (fix) => {
    const edits = fix.edits.map((edit) => [offset(edit.location), offset(edit.end_location), edit.content]);
    edits.sort((one, other) => other[0] - one[0]);
    for (const [from, to, content] of edits) area.value = area.value.slice(0, from) + content + area.value.slice(to);
    run();
  };

  const shown = (finding) => {
    const item = element("li", undefined, finding.severity);
    const head = item.appendChild(element("p"));
    head.append(place(finding), " ");
    const rule = head.appendChild(element("a", finding.code));
    rule.href = new URL(`../rules/${finding.name}/`, assets).href;
    head.append(` ${finding.message}`);
    if (finding.trail.length) {
      const trail = item.appendChild(element("ul"));
      for (const step of finding.trail) trail.appendChild(element("li")).append(place(step), ` ${step.message}`);
    }
    if (finding.help) item.appendChild(element("p", `help: ${finding.help}`));
    if (finding.evidence?.verdict) item.appendChild(element("p", `${finding.evidence.verdict} on ${finding.evidence.platform}`, "playground-evidence"));
    if (finding.fix?.edits?.length) {
      const fix = item.appendChild(element("button", `Fix (${finding.fix.applicability}): ${finding.fix.message}`, "playground-fix"));
      fix.type = "button";
      fix.addEventListener("click", () => apply(finding.fix));
    }
    return item;
  };

  const told = ({ id, report, problem, ready: started }) => {
    if (started) {
      ready = true;
      button.textContent = "Lint";
      return run();
    }
    if (problem !== undefined) {
      state.textContent = problem.trim().split("\n").at(-1);
      button.disabled = false;
      return;
    }
    if (id !== asked) return;
    list.replaceChildren(...report.findings.map(shown));
    const count = report.findings.length;
    const said = report.said.trim().replaceAll("example.py:", "line ");
    state.textContent = [count === 1 ? "1 finding" : `${count} findings`, said].filter(Boolean).join("; ");
    box.dataset.state = "linted";
  };

  const run = () => {
    if (!ready) return;
    button.disabled = false;
    const words = input("all").checked ? ["--select", "ALL"] : input("preview").checked ? ["--preview"] : [];
    state.textContent = "linting …";
    worker.postMessage({ id: ++asked, text: area.value, words });
  };

  const start = () => {
    if (ready) return run();
    button.disabled = true;
    state.textContent = "loading Python …";
    worker?.terminate();
    worker = new Worker(new URL("playground-worker.js", assets), { type: "module" });
    worker.onmessage = ({ data }) => told(data);
    worker.onerror = (event) => told({ problem: event.message || "the worker could not be loaded" });
    worker.postMessage({ start: base, settings });
  };

  fetch(new URL("playground.json", base)).then((answer) => answer.json()).then((found) => {
    settings = found;
    for (const name of Object.keys(settings.examples)) input("example").add(new Option(name));
    area.value = Object.values(settings.examples)[0];
    box.hidden = false;
  });
  button.addEventListener("click", start);
  input("example").addEventListener("change", ({ target }) => { area.value = settings.examples[target.value]; run(); });
  for (const name of ["preview", "all"]) input(name).addEventListener("change", run);
  area.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(run, 400); });
})();
