// Starts `streamlint server` and hands it to VS Code. What is found, shown and fixed is the server's affair; it asks for its settings.
"use strict";

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

const LANGUAGES = ["python", "cython", "cuda-cpp", "cuda", "cpp", "c"];
const STARTS = ["streamlint.path", "streamlint.args"];

let client;
let turn = Promise.resolve(); // one start or stop after the other

function command() {
  const settings = vscode.workspace.getConfiguration("streamlint");
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? "";
  const path = settings.get("path", "streamlint").replace(/\$\{workspaceFolder\}/g, folder);
  return { command: path, args: ["server", ...settings.get("args", [])] };
}

async function start() {
  const selector = ["file", "untitled", "vscode-notebook-cell"].flatMap((scheme) => LANGUAGES.map((language) => ({ scheme, language })));
  client = new LanguageClient("streamlint", "streamlint", command(), { documentSelector: selector });
  try {
    await client.start();
  } catch (error) {
    const answer = await vscode.window.showErrorMessage(
      `streamlint did not start: ${error.message ?? error}. It is installed with: pip install 'streamlint[server]'`,
      "Open Settings"
    );
    if (answer) {
      await vscode.commands.executeCommand("workbench.action.openSettings", "streamlint");
    }
  }
}

async function stop() {
  const old = client;
  client = undefined;
  if (old?.needsStop()) {
    await old.stop();
  }
}

function restart() {
  turn = turn.then(stop).then(start);
  return turn;
}

function activate(context) {
  context.subscriptions.push(
    vscode.commands.registerCommand("streamlint.restart", restart),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (STARTS.some((name) => event.affectsConfiguration(name))) {
        restart();
      }
    })
  );
  turn = turn.then(start);
}

function deactivate() {
  return turn.then(stop);
}

module.exports = { activate, deactivate };
