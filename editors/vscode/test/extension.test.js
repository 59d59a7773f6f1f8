// The extension as it is packed, in a stand-in for VS Code, with the real server.
// STREAMLINT_EXTENSION is the folder of an unpacked extension, STREAMLINT_COMMAND the program; else it is this folder's, and that of the PATH.
"use strict";

const assert = require("node:assert/strict");
const fs = require("node:fs");
const Module = require("node:module");
const os = require("node:os");
const path = require("node:path");
const { test } = require("node:test");
const { create } = require("./vscode.js");

const EXTENSION = path.resolve(process.env.STREAMLINT_EXTENSION ?? path.dirname(__dirname));
const COMMAND = process.env.STREAMLINT_COMMAND ?? "streamlint";
const MANIFEST = JSON.parse(fs.readFileSync(path.join(EXTENSION, "package.json"), "utf8"));
const WAIT = "    torch.cuda.current_stream().synchronize()\n";
const READ = 'def read(x):\n    host = x.cuda().to("cpu", non_blocking=True)\n    return host.numpy()\n';
const TEXT = `import torch\n\n\n${READ}`;
const MENDED = TEXT.replace("    return", `${WAIT}    return`);
const LINE = 5; // of the finding

let current;
const load = Module._load;
Module._load = (name, ...rest) => (name === "vscode" ? current : load(name, ...rest));

/** A test in which the extension runs until its end. */
function scenario(title, play, settings = { "streamlint.path": COMMAND }, prepare = () => {}) {
  test(title, { timeout: 180_000 }, async () => {
    const root = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "streamlint-")));
    const { vscode, user } = create(root, MANIFEST, settings);
    prepare(root, user);
    current = vscode;
    const main = require.resolve(path.join(EXTENSION, MANIFEST.main));
    delete require.cache[main];
    const extension = require(main);
    const subscriptions = [];
    extension.activate({ subscriptions });
    try {
      await play(user, root);
    } finally {
      await extension.deactivate();
      subscriptions.forEach((each) => each.dispose());
      fs.rmSync(root, { recursive: true });
    }
    assert.equal(user.seen.diagnostics.size, 0);
  });
}

/** A program in a folder that starts the one that is tested. */
function program(folder) {
  const file = path.join(folder, "streamlint");
  fs.mkdirSync(folder, { recursive: true });
  fs.writeFileSync(file, `#!/bin/sh\nexec '${COMMAND}' "$@"\n`, { mode: 0o755 });
  return file;
}

const started = (user) => user.seen.logged.filter((line) => line.startsWith("starting ")).map((line) => line.replace("starting ", ""));

scenario("a finding has its trail, its page and its fixes", async (user) => {
  const document = user.open("a.py", TEXT);
  const [found] = await user.findings(document, ["SL005"]);
  const line = TEXT.split("\n")[LINE];
  assert.deepEqual([found.range.start, found.range.end].map((each) => each.line), [LINE, LINE]);
  assert.equal(line.slice(found.range.start.character, found.range.end.character), "numpy");
  assert.match(found.message, /^host read before the asynchronous device-to-host copy completes; /);
  assert.deepEqual([found.source, found.severity, found.code.value], ["streamlint", 0, "SL005"]);
  assert.match(found.code.target.toString(), /^https:.*\/rules\/d2h-read-before-sync\/$/);
  const [step] = found.relatedInformation;
  assert.equal(step.location.uri.toString(), document.uri.toString());
  assert.equal(step.location.range.start.line, LINE - 1);
  assert.ok(step.message);

  const page = await user.hover(document, found.range.start);
  assert.ok(page.contents[0].value.startsWith("# d2h-read-before-sync (SL005)\n"));
  assert.deepEqual(page.range, found.range);
  assert.ok(!(await user.hover(document, { line: 0, character: 1 })));

  const [fix, hide] = await user.actions(document, found.range, "quickfix");
  assert.deepEqual([fix.title, fix.kind.value, fix.isPreferred], ["SL005: wait for the copy", "quickfix", true]);
  assert.equal(hide.title, "suppress SL005 with a comment");
  const [all] = await user.actions(document, found.range, "source.fixAll.streamlint");
  assert.equal(all.kind.value, "source.fixAll.streamlint");
  const [[uri, edits]] = all.edit.changes;
  assert.equal(uri.toString(), document.uri.toString());
  assert.deepEqual(fix.edit.changes[0][1], edits);
  user.edit(document, edits);
  assert.equal(document.getText(), MENDED);
  await user.findings(document, []);
  assert.deepEqual(user.seen.errors, []);
});

scenario("what is typed is linted, and its unused comments are faded", async (user) => {
  const document = user.open("a.py", MENDED, "python");
  await user.findings(document, []);
  const place = { start: { line: LINE, character: 0 }, end: { line: LINE + 1, character: 0 } };
  user.edit(document, [{ range: place, newText: "" }]);
  assert.equal(document.getText(), TEXT);
  await user.findings(document, ["SL005"]);
  user.configure({ "streamlint.configuration": { select: ["SL900"] } });
  user.edit(document, [{ range: { start: { line: 1, character: 0 }, end: { line: 1, character: 0 } }, newText: "x = 1  # streamlint: ignore[SL001]" }]);
  user.configure({ "streamlint.configuration": { select: ["SL001", "SL900"] } });
  const [found] = await user.findings(document, ["SL900"]);
  assert.deepEqual([...found.tags], [1]);
});

scenario("settings and files of the folder count at once", async (user) => {
  const document = user.open("a.py", TEXT);
  await user.findings(document, ["SL005"]);
  user.configure({ "streamlint.configuration": { ignore: ["SL005"] } });
  await user.findings(document, []);
  user.configure({ "streamlint.configuration": null });
  await user.findings(document, ["SL005"]);
  user.save("streamlint.toml", 'ignore = ["SL005"]\n');
  await user.findings(document, []);
  user.save("streamlint.toml", "selct = []\n");
  await user.until(() => user.seen.errors.length);
  assert.match(user.seen.errors[0], /unknown key 'selct'; did you mean 'select'\?$/);
});

scenario("a notebook's findings stand in its cells", async (user) => {
  const cells = user.openNotebook("a.ipynb", "import torch\n", READ);
  const [found] = await user.findings(cells[1], ["SL005"]);
  assert.equal(found.range.start.line, 2);
  assert.equal(found.relatedInformation[0].location.uri.toString(), cells[1].uri.toString());
  assert.ok((await user.hover(cells[1], found.range.start)).contents[0].value.startsWith("# d2h-read-before-sync"));
  const [fix] = await user.actions(cells[1], found.range, "quickfix");
  assert.deepEqual(fix.edit.changes.map(([uri]) => uri.toString()), [cells[1].uri.toString()]);
});

scenario("the server is started anew by the command, by its settings, and not where it is off", async (user) => {
  const document = user.open("a.py", TEXT);
  await user.findings(document, ["SL005"]);
  const [before] = user.seen.diagnostics;
  await user.run("streamlint.restart");
  await user.findings(document, ["SL005"]);
  assert.ok(!user.seen.diagnostics.has(before));
  user.configure({ "streamlint.args": ["--config", 'ignore = ["SL005"]'] });
  await user.until(() => started(user).length === 3);
  await user.findings(document, []);
  user.configure({ "streamlint.args": [] });
  await user.findings(document, ["SL005"]);
  user.configure({ "streamlint.enable": false });
  await user.until(() => !user.seen.diagnostics.size);
  assert.deepEqual(user.seen.errors, []);
});

scenario(
  "a wrong path is told, and a right one starts the server while the message stands",
  async (user, root) => {
    await user.until(() => user.seen.errors.length);
    assert.ok(user.seen.errors[0].startsWith(`${path.join(root, "nowhere")} did not start: `));
    assert.ok(user.seen.errors[0].endsWith("streamlint is installed with: pip install 'streamlint[server]'"));
    const document = user.open("a.py", TEXT);
    user.configure({ "streamlint.path": COMMAND });
    await user.findings(document, ["SL005"]);
    assert.equal(user.seen.errors.length, 1);
  },
  { "streamlint.path": "${workspaceFolder}/nowhere" }
);

scenario(
  "a program that ends at once is told once, and is not tried again",
  async (user) => {
    user.answer("Open Settings");
    await user.until(() => user.seen.commands.length);
    assert.deepEqual(user.seen.commands, [["workbench.action.openSettings", "streamlint"]]);
    assert.equal(user.seen.errors.length, 1);
    assert.ok(user.seen.errors[0].startsWith(`${process.execPath} did not start: `));
    assert.match(user.seen.logged.join("\n"), /Cannot find module/); // what the program said is in the log
    user.configure({ "streamlint.path": COMMAND, "streamlint.args": [] });
    await user.findings(user.open("a.py", TEXT), ["SL005"]);
  },
  { "streamlint.path": process.execPath }
);

scenario(
  "without a path, the environment of the Python extension is taken, then that of the folder",
  async (user, root) => {
    await user.findings(user.open("a.py", TEXT), ["SL005"]);
    assert.deepEqual(started(user), [path.join(root, ".venv", "bin", "streamlint")]);
    user.python.choose(path.join(root, "chosen", "bin", "python"));
    await user.until(() => started(user).length === 2);
    assert.equal(started(user)[1], path.join(root, "chosen", "bin", "streamlint"));
    user.configure({ "streamlint.path": COMMAND });
    user.python.choose(path.join(root, "other", "bin", "python"));
    await user.until(() => started(user).length === 3);
    await user.run("streamlint.restart");
    assert.deepEqual(started(user).slice(2), [COMMAND, COMMAND]);
    assert.deepEqual(user.seen.errors, []);
  },
  {},
  (root, user) => {
    program(path.join(root, ".venv", "bin"));
    program(path.join(root, "chosen", "bin"));
    user.python.choose(path.join(root, "bare", "bin", "python"));
  }
);

scenario("every command that is offered is there", async (user) => {
  assert.ok(MANIFEST.contributes.commands.every(({ command }) => user.knows(command)));
  user.run("streamlint.showLog");
  assert.equal(user.seen.log, 1);
  await user.run("streamlint.fixAll");
  assert.deepEqual(user.seen.commands, [["editor.action.codeAction", { kind: "source.fixAll.streamlint", apply: "first" }]]);
});
