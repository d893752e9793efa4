// Bundles a program with what it imports from files, and runs the result in this node.
const { buildSync } = require("esbuild");
const fs = require("node:fs");
const Module = require("node:module");
const path = require("node:path");

const words = process.argv.slice(2);
if (words.length === 0 || words[0].startsWith("-")) {
  console.error("usage: tsx FILE [ARGUMENT]...");
  process.exit(2);
}
const file = path.resolve(words[0]);
if (!fs.existsSync(file)) {
  console.error(`tsx: ${words[0]}: No such file or directory`);
  process.exit(1);
}
const options = { entryPoints: [file], bundle: true, platform: "node", format: "cjs", packages: "external", write: false };
const shims = { define: { "import.meta.url": "__tsx_url" }, banner: { js: `const __tsx_url = ${JSON.stringify("file://" + file)};` } };
let built;
try {
  built = buildSync({ ...options, ...shims, sourcemap: "inline", logLevel: "error" });
} catch {
  process.exit(1);
}
process.argv = [process.argv[0], file, ...words.slice(1)];
const main = new Module(file, null);
main.filename = file;
main.paths = Module._nodeModulePaths(path.dirname(file));
main._compile(built.outputFiles[0].text, file);
