// Stands in for the module `vscode`, which only VS Code has: as much of it as the client library asks for when it works with this server.
// A test gets a new one, does with `user` what a user does, and looks at what VS Code would show. Asked for anything else, it throws.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const { TextDocument } = require("vscode-languageserver-textdocument");
const { URI } = require("vscode-uri");

const VERSION = "1.91.0"; // the oldest that package.json allows

class Position {
  constructor(line, character) {
    Object.assign(this, { line, character });
  }
}

class Range {
  constructor(...places) {
    const [start, end] = places.length === 4 ? [new Position(places[0], places[1]), new Position(places[2], places[3])] : places;
    Object.assign(this, { start, end });
  }
}

class Disposable {
  constructor(dispose) {
    this.dispose = dispose;
  }
  static from(...all) {
    return new Disposable(() => all.forEach((each) => each.dispose()));
  }
}

class EventEmitter {
  listeners = new Set();
  event = (listener, receiver, disposables) => {
    const called = (value) => listener.call(receiver, value);
    this.listeners.add(called);
    const end = new Disposable(() => this.listeners.delete(called));
    disposables?.push(end);
    return end;
  };
  fire(value) {
    [...this.listeners].forEach((listener) => listener(value));
  }
  dispose() {
    this.listeners.clear();
  }
}

class CancellationTokenSource {
  token = { isCancellationRequested: false, onCancellationRequested: () => new Disposable(() => {}) };
  cancel() {
    this.token.isCancellationRequested = true;
  }
  dispose() {}
}

class Diagnostic {
  constructor(range, message, severity) {
    Object.assign(this, { range, message, severity });
  }
}

class DiagnosticRelatedInformation {
  constructor(location, message) {
    Object.assign(this, { location, message });
  }
}

class Location {
  constructor(uri, range) {
    Object.assign(this, { uri, range });
  }
}

class CodeAction {
  constructor(title, kind) {
    Object.assign(this, { title, kind });
  }
}

class CodeActionKind {
  constructor(value) {
    this.value = value;
  }
  append(word) {
    return new CodeActionKind(this.value ? `${this.value}.${word}` : word);
  }
}
CodeActionKind.Empty = new CodeActionKind("");
CodeActionKind.QuickFix = new CodeActionKind("quickfix");
CodeActionKind.Source = new CodeActionKind("source");

class Hover {
  constructor(contents, range) {
    Object.assign(this, { contents: [contents].flat(), range });
  }
}

class MarkdownString {
  constructor(value = "") {
    this.value = value;
  }
  appendMarkdown(text) {
    this.value += text;
    return this;
  }
}

class TextEdit {
  constructor(range, newText) {
    Object.assign(this, { range, newText });
  }
}

class WorkspaceEdit {
  changes = [];
  set(uri, edits) {
    this.changes.push([uri, edits.map((each) => (Array.isArray(each) ? each[0] : each))]);
  }
}

const plain = (...names) => Object.fromEntries(names.map((name) => [name, class {}]));
const numbered = (...names) => Object.fromEntries(names.map((name, number) => [name, number]));

/** The names of a level of the API. Another name than these is an error, not undefined. */
function strict(title, names) {
  return new Proxy(names, {
    get(target, name) {
      if (!(name in target) && typeof name === "string" && !["then", "default", "__esModule", "toJSON"].includes(name)) {
        throw new Error(`the stand-in lacks ${title}.${name}`);
      }
      return target[name];
    },
  });
}

/** A document of VS Code, over the one that the protocol's authors publish. */
function opened(uri, languageId, text) {
  const held = TextDocument.create(uri.toString(), languageId, 1, text);
  return {
    uri,
    languageId,
    isClosed: false,
    get version() {
      return held.version;
    },
    getText: (range) => held.getText(range),
    offsetAt: (position) => held.offsetAt(position),
    change: (changes) => TextDocument.update(held, changes, held.version + 1),
  };
}

const matches = (filter, { uri, languageId }) =>
  (!filter.scheme || filter.scheme === uri.scheme) && (!filter.language || filter.language === languageId);

/** The settings as VS Code holds them: what package.json gives where a user has set nothing. */
function configured(manifest, set, section) {
  const values = Object.entries(manifest.contributes.configuration.properties).map(([name, { default: value }]) => [name, set[name] ?? value]);
  const tree = {};
  for (const [name, value] of values) {
    const words = name.split(".");
    words.slice(0, -1).reduce((level, word) => (level[word] ??= {}), tree)[words.at(-1)] = value;
  }
  const at = (name) => name.split(".").reduce((level, word) => level?.[word], tree);
  return { get: (name, otherwise) => at(section ? `${section}.${name}` : name) ?? otherwise };
}

/** The Python extension, which is there once a user has chosen an environment in it. */
function pythonExtension(extensions) {
  const news = new EventEmitter();
  let python;
  const environments = {
    getActiveEnvironmentPath: () => ({ id: python, path: python }),
    resolveEnvironment: async ({ path: file }) => ({ executable: { uri: URI.file(file) } }),
    onDidChangeActiveEnvironmentPath: news.event,
  };
  return {
    choose(file) {
      python = file;
      extensions.set("ms-python.python", { activate: async () => ({ environments }) });
      news.fire({ id: file, path: file });
    },
  };
}

/** A new VS Code with one folder open. */
exports.create = function create(root, manifest, set = {}) {
  const events = new Proxy({}, { get: (target, name) => (target[name] ??= new EventEmitter()) });
  const providers = { hover: [], actions: [] };
  const seen = { commands: [], errors: [], logged: [], log: 0, shown: new Map(), diagnostics: new Set() };
  const commands = new Map();
  const extensions = new Map();
  const answers = [];
  const documents = [];
  const notebooks = [];
  const watchers = new Set();

  const listed = (list) => (selector, provider) => {
    const entry = { selector, provider };
    list.push(entry);
    return new Disposable(() => list.splice(list.indexOf(entry), 1));
  };
  const note = (text) => seen.logged.push(String(text));
  const message = (kind) => (text, ...choices) => {
    seen[kind]?.push(text);
    const answer = answers.shift();
    return new Promise((resolve) => answer && resolve(choices.find((choice) => choice === answer))); // else the message stands
  };

  function collection() {
    const held = new Map();
    const made = {
      get: (uri) => held.get(uri.toString()),
      set(uri, found) {
        held.set(uri.toString(), found ?? []);
        events.news.fire();
      },
      delete: (uri) => held.delete(uri.toString()),
      clear: () => held.clear(),
      dispose: () => seen.diagnostics.delete(made),
    };
    seen.diagnostics.add(made);
    return made;
  }

  function watcher() {
    const made = { create: new EventEmitter(), change: new EventEmitter(), delete: new EventEmitter() };
    watchers.add(made);
    const ways = { onDidCreate: made.create.event, onDidChange: made.change.event, onDidDelete: made.delete.event };
    return { ...ways, dispose: () => watchers.delete(made) };
  }

  const log = {
    ...Object.fromEntries(["append", "appendLine", "error", "warn", "info", "debug", "trace"].map((name) => [name, note])),
    logLevel: 3,
    onDidChangeLogLevel: events.logLevel.event,
    show: () => (seen.log += 1),
    dispose() {},
  };

  const workspaceEvents = ["ChangeConfiguration", "ChangeWorkspaceFolders", "OpenTextDocument", "CloseTextDocument", "ChangeTextDocument"]
    .concat(["SaveTextDocument", "OpenNotebookDocument", "CloseNotebookDocument", "ChangeNotebookDocument", "SaveNotebookDocument"])
    .concat(["CreateFiles", "RenameFiles", "DeleteFiles"]);

  const vscode = strict("vscode", {
    version: VERSION,
    ...{ CancellationTokenSource, CodeAction, CodeActionKind, Diagnostic, DiagnosticRelatedInformation, Disposable, EventEmitter, Hover },
    ...{ Location, MarkdownString, Position, Range, TextEdit, Uri: URI, WorkspaceEdit, CancellationError: class extends Error {} },
    ...plain("CallHierarchyItem", "CodeLens", "CompletionItem", "DocumentLink", "InlayHint", "SymbolInformation", "TypeHierarchyItem"),
    ...plain("TabInputText", "TabInputTextDiff", "TabInputCustom", "TabInputNotebook", "SnippetTextEdit"),
    CodeActionTriggerKind: { Invoke: 1, Automatic: 2 },
    DiagnosticSeverity: numbered("Error", "Warning", "Information", "Hint"),
    DiagnosticTag: { Unnecessary: 1, Deprecated: 2 },
    LogLevel: numbered("Off", "Trace", "Debug", "Info", "Warning", "Error"),
    NotebookCellKind: { Markup: 1, Code: 2 },
    commands: strict("commands", {
      registerCommand(name, run) {
        commands.set(name, run);
        return new Disposable(() => commands.delete(name));
      },
      async executeCommand(name, ...words) {
        seen.commands.push([name, ...words]);
        return commands.get(name)?.(...words);
      },
    }),
    env: strict("env", { appName: "stand-in", language: "en" }),
    extensions: strict("extensions", { getExtension: (name) => extensions.get(name) }),
    languages: strict("languages", {
      match: (selector, document) => ([selector].flat().some((filter) => matches(filter, document)) ? 10 : 0),
      createDiagnosticCollection: collection,
      registerHoverProvider: listed(providers.hover),
      registerCodeActionsProvider: listed(providers.actions),
    }),
    window: strict("window", {
      activeTextEditor: undefined,
      visibleTextEditors: [],
      tabGroups: { all: [], onDidChangeTabs: events.tabs.event },
      onDidChangeVisibleTextEditors: events.editors.event,
      onDidChangeActiveTextEditor: events.editor.event,
      createOutputChannel: () => log,
      showErrorMessage: message("errors"),
      showWarningMessage: message("warnings"),
      showInformationMessage: message("informations"),
    }),
    workspace: strict("workspace", {
      workspaceFolders: [{ uri: URI.file(root), name: path.basename(root), index: 0 }],
      getWorkspaceFolder: () => vscode.workspace.workspaceFolders[0],
      textDocuments: documents,
      notebookDocuments: notebooks,
      getConfiguration: (section) => configured(manifest, set, section),
      createFileSystemWatcher: watcher,
      ...Object.fromEntries(workspaceEvents.map((name) => [`onDid${name}`, events[name].event])),
      ...Object.fromEntries(["SaveTextDocument", "CreateFiles", "RenameFiles", "DeleteFiles"].map((name) => [`onWill${name}`, events.will.event])),
    }),
  });

  /** What a user does. */
  const user = {
    seen,
    answer: (word) => answers.push(word),
    python: pythonExtension(extensions),
    run: (name) => commands.get(name)(),
    knows: (name) => commands.has(name),

    open(name, text, language = "python") {
      const document = opened(URI.file(path.join(root, name)), language, text);
      documents.push(document);
      events.OpenTextDocument.fire(document);
      return document;
    },

    openNotebook(name, ...texts) {
      const uri = URI.file(path.join(root, name));
      const notebook = { uri, notebookType: "jupyter-notebook", version: 1, isDirty: false, metadata: {} };
      const cells = texts.map((text, index) => {
        const document = Object.assign(opened(uri.with({ scheme: "vscode-notebook-cell", fragment: `c${index}` }), "python", text), { notebook });
        return { index, notebook, document, kind: 2, metadata: {}, outputs: [] };
      });
      notebook.getCells = () => cells;
      notebooks.push(notebook);
      documents.push(...cells.map((cell) => cell.document));
      cells.forEach((cell) => events.OpenTextDocument.fire(cell.document));
      events.OpenNotebookDocument.fire(notebook);
      return cells.map((cell) => cell.document);
    },

    /** Replace a part of a document, as typing does. */
    edit(document, edits) {
      const contentChanges = [...edits]
        .sort((one, other) => document.offsetAt(other.range.start) - document.offsetAt(one.range.start))
        .map(({ range, newText }) => ({ range, text: newText, rangeOffset: document.offsetAt(range.start) }));
      document.change(contentChanges);
      events.ChangeTextDocument.fire({ document, contentChanges, reason: undefined });
    },

    save(name, text) {
      const file = path.join(root, name);
      fs.writeFileSync(file, text);
      [...watchers].forEach((each) => each.change.fire(URI.file(file)));
    },

    configure(changes) {
      Object.assign(set, changes);
      const affectsConfiguration = (name) => Object.keys(changes).some((key) => key === name || key.startsWith(`${name}.`));
      events.ChangeConfiguration.fire({ affectsConfiguration });
    },

    /** The findings that are shown of a document, once they are as wanted. */
    async findings(document, wanted) {
      const shown = () => [...seen.diagnostics].flatMap((each) => each.get(document.uri) ?? []);
      const codes = () => shown().map((each) => each.code.value);
      await user.until(() => codes().join() === wanted.join(), () => `${codes()} instead of ${wanted}; ${seen.logged.join("\n")}`);
      return shown();
    },

    async hover(document, position) {
      const [found] = await user.ask(providers.hover, document, (each, token) => each.provideHover(document, position, token));
      return found;
    },

    async actions(document, range, only) {
      const context = { diagnostics: [], only: only && new CodeActionKind(only), triggerKind: 1 };
      const found = await user.ask(providers.actions, document, async (each, token) => {
        const mine = (await each.provideCodeActions(document, range, context, token)) ?? [];
        return Promise.all(mine.map((action) => (action.edit ? action : each.resolveCodeAction(action, token))));
      });
      return found.flat();
    },

    ask(list, document, question) {
      const { token } = new CancellationTokenSource();
      const asked = list.filter(({ selector }) => vscode.languages.match(selector, document) > 0);
      return Promise.all(asked.map(({ provider }) => question(provider, token)));
    },

    /** Wait for what is to come, for a minute. */
    until(holds, tell = () => seen.logged.join("\n")) {
      return new Promise((resolve, reject) => {
        const began = Date.now();
        const timer = setInterval(() => {
          if (holds()) {
            clearInterval(timer);
            resolve();
          } else if (Date.now() - began > 60_000) {
            clearInterval(timer);
            reject(new Error(`in vain: ${tell()}`));
          }
        }, 10);
      });
    },
  };
  return { vscode, user };
};
