// Cases of tests/spec in Node: node --experimental-wasm-jspi specs.mjs PAGE TESTS.zip PART PARTS FROM. Lines of JSON: see specs_run.mjs.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { runSpecs } from "./specs_run.mjs";

const [page, tests, part, parts, from] = process.argv.slice(2);
const read = (path) => new Uint8Array(readFileSync(path));
const { loadPyodide } = await import(pathToFileURL(`${page}/pyodide/pyodide.mjs`));
const { installStacks } = await import(pathToFileURL(`${page}/stacks.mjs`));
await runSpecs({
  loadPyodide,
  installStacks,
  indexURL: `${page}/pyodide/`,
  load: (name) => read(`${page}/${name}`),
  tests: read(tests),
  part, parts, from,
  tell: (message) => console.log(JSON.stringify(message)),
  onFault(died) {
    process.on("uncaughtException", died);
    process.on("unhandledRejection", died);
  },
});
process.exit(0);
