// Runs the linter beside the page, so that typing stays smooth. Messages in: {start: base, settings} once, then {id, text, words}.
let lint;

async function start(base, settings) {
  const { loadPyodide } = await import(new URL("pyodide.mjs", new URL(settings.pyodide, base)));
  const pyodide = await loadPyodide();
  const archive = await fetch(new URL("streamlint.zip", base));
  if (!archive.ok) throw new Error(`${archive.url}: ${archive.status}`);
  pyodide.unpackArchive(await archive.arrayBuffer(), "zip", { extractDir: "/site" });
  pyodide.runPython("import sys; sys.path.insert(0, '/site')");
  const entry = pyodide.pyimport("streamlint_playground");
  lint = (text, words) => entry.lint(text, "example.py", words);
}

self.onmessage = async ({ data }) => {
  try {
    if (data.start) {
      await start(data.start, data.settings);
      self.postMessage({ ready: true });
    }
    else self.postMessage({ id: data.id, report: JSON.parse(lint(data.text, data.words)) });
  } catch (problem) {
    self.postMessage({ id: data.id, problem: String(problem.message || problem) });
  }
};
