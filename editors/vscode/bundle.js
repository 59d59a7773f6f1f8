// Writes dist/: the extension with the client library in one file, and the licences of what was taken into it.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const esbuild = require("esbuild");

const { metafile } = esbuild.buildSync({
  absWorkingDir: __dirname,
  entryPoints: ["extension.js"],
  outfile: "dist/extension.js",
  bundle: true,
  external: ["vscode"],
  platform: "node",
  target: "node20",
  minify: true,
  metafile: true,
});

const taken = new Set(Object.keys(metafile.inputs).map((name) => name.match(/^.*node_modules\/(?:@[^/]+\/)?[^/]+/)?.[0]));
const notices = [...taken].filter(Boolean).sort().map((folder) => {
  const inside = path.join(__dirname, folder);
  const { name, version, license } = JSON.parse(fs.readFileSync(path.join(inside, "package.json"), "utf8"));
  const files = fs.readdirSync(inside).filter((file) => /^(licen[cs]e|thirdpartynotices)/i.test(file));
  if (!files.length) {
    throw new Error(`${name} comes without a licence`);
  }
  const texts = files.map((file) => fs.readFileSync(path.join(inside, file), "utf8").trim());
  return [`${name} ${version} (${license})`, ...texts].join("\n\n");
});
fs.writeFileSync(path.join(__dirname, "dist", "NOTICES.txt"), notices.join(`\n\n${"-".repeat(80)}\n\n`) + "\n");
