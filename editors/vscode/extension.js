// Starts `streamlint server` and hands it to VS Code. What is found, shown and fixed is the server's affair; it asks for its settings.
// @ts-check
"use strict";

const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const vscode = require("vscode");
const { CloseAction, LanguageClient, RevealOutputChannelOn } = require("vscode-languageclient/node");

const LANGUAGES = ["python", "cython", "cuda-cpp", "cuda", "cpp", "c"];
const STARTS = ["streamlint.enable", "streamlint.path", "streamlint.args"]; // a change of these starts the server anew
const PROGRAM = process.platform === "win32" ? "streamlint.exe" : "streamlint";
const BESIDE = process.platform === "win32" ? "Scripts" : "bin";

const PATIENCE = 4000; // milliseconds for a server's end, after which it is killed

/** A client that leaves it to us to tell of a server that does not come up, and that does not try it again. */
class Client extends LanguageClient {
  up = false;

  /** @override @param {string} message @param {any} [data] @param {boolean | "force"} [shown] */
  error(message, data, shown) {
    super.error(message, data, this.up ? shown : false);
  }

  /** @override @param {number} [most] */
  createDefaultErrorHandler(most) {
    const usual = super.createDefaultErrorHandler(most);
    return {
      error: usual.error.bind(usual),
      closed: () => (this.up ? usual.closed() : { action: CloseAction.DoNotRestart, handled: true }),
    };
  }
}

/** @type {Client | undefined} */
let client;
/** @type {vscode.LogOutputChannel} */
let log;
/** @type {Promise<void>} */
let turn = Promise.resolve(); // one start or stop after the other

/** The API of the Python extension: as much of it as is asked for.
 * @typedef {{ executable: { uri?: vscode.Uri } }} Environment
 * @typedef {{
 *   getActiveEnvironmentPath(): unknown,
 *   resolveEnvironment(path: unknown): Promise<Environment | undefined>,
 *   onDidChangeActiveEnvironmentPath: vscode.Event<unknown>,
 * }} Environments
 */

/** @returns {Promise<Environments | undefined>} */
async function environments() {
  return (await vscode.extensions.getExtension("ms-python.python")?.activate())?.environments;
}

/** The Python that is chosen in VS Code. */
async function interpreter() {
  try {
    const known = await environments();
    return (await known?.resolveEnvironment(known.getActiveEnvironmentPath()))?.executable.uri?.fsPath;
  } catch (error) {
    log.warn(`the Python extension does not say which environment is chosen: ${error}`);
  }
}

/** The folders in which the program may lie, the best first. */
async function folders() {
  const python = await interpreter();
  const chosen = python ? [path.dirname(python), path.join(path.dirname(python), BESIDE)] : [];
  const own = (vscode.workspace.workspaceFolders ?? []).flatMap(({ uri }) =>
    [".venv", "venv"].map((name) => path.join(uri.fsPath, name, BESIDE))
  );
  return [...chosen, ...own];
}

/** @param {vscode.WorkspaceConfiguration} settings */
async function program(settings) {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? "";
  const named = settings.get("path", "").trim();
  if (named) {
    return named.replaceAll("${workspaceFolder}", folder).replace(/^~(?=[/\\])/, os.homedir());
  }
  return (await folders()).map((each) => path.join(each, PROGRAM)).find((each) => fs.existsSync(each)) ?? "streamlint";
}

async function start() {
  const settings = vscode.workspace.getConfiguration("streamlint");
  if (!settings.get("enable", true)) {
    return;
  }
  const command = await program(settings);
  log.info(`starting ${command}`);
  client = new Client(
    "streamlint",
    "streamlint",
    { command, args: ["server", ...settings.get("args", [])] },
    {
      documentSelector: ["file", "untitled", "vscode-notebook-cell"].flatMap((scheme) => LANGUAGES.map((language) => ({ scheme, language }))),
      outputChannel: log,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      initializationFailedHandler: () => false,
    }
  );
  try {
    await client.start();
    client.up = true;
  } catch (error) {
    complain(`${command} did not start: ${error instanceof Error ? error.message : error}`);
  }
}

/** Tell the user what to do. Nothing waits for the answer, or a mended setting would start nothing until it is given.
 * @param {string} fault
 */
async function complain(fault) {
  const hint = "streamlint is installed with: pip install 'streamlint[server]'";
  const answer = await vscode.window.showErrorMessage(`${fault}. ${hint}`, "Open Settings", "Show Log");
  if (answer === "Open Settings") {
    await vscode.commands.executeCommand("workbench.action.openSettings", "streamlint");
  } else if (answer === "Show Log") {
    log.show();
  }
}

async function stop() {
  const old = client;
  client = undefined;
  try {
    await (old?.needsStop() ? old.stop(PATIENCE) : undefined);
  } catch (error) {
    log.warn(`the server had to be killed: ${error}`);
  }
}

function restart() {
  turn = turn.then(stop).then(start).catch((error) => log.error(error)); // or nothing would ever be started again
  return turn;
}

/** Follow the Python extension's choice, where no path is set.
 * @param {vscode.ExtensionContext} context
 */
async function follow(context) {
  const known = await environments();
  const listener = known?.onDidChangeActiveEnvironmentPath(() => {
    if (!vscode.workspace.getConfiguration("streamlint").get("path", "").trim()) {
      restart();
    }
  });
  context.subscriptions.push(...(listener ? [listener] : []));
}

/** @param {vscode.ExtensionContext} context */
function activate(context) {
  log = vscode.window.createOutputChannel("streamlint", { log: true });
  context.subscriptions.push(
    log,
    vscode.commands.registerCommand("streamlint.restart", restart),
    vscode.commands.registerCommand("streamlint.showLog", () => log.show()),
    vscode.commands.registerCommand("streamlint.fixAll", () =>
      vscode.commands.executeCommand("editor.action.codeAction", { kind: "source.fixAll.streamlint", apply: "first" })
    ),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (STARTS.some((name) => event.affectsConfiguration(name))) {
        restart();
      }
    })
  );
  restart();
  follow(context).catch((error) => log.warn(`the Python extension did not start: ${error}`));
}

function deactivate() {
  return turn.then(stop);
}

module.exports = { activate, deactivate };
