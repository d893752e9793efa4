// Names the files of Pyodide's library that guest Python loads before it has a program: node loaded.mjs DIRECTORY
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { servePython } from "./engine_python.mjs";

const FILES = `
import sys
"\\n".join(module.__file__ for module in sys.modules.values() if getattr(module, "__file__", None))
`;
const [directory] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${directory}/pyodide/pyodide.mjs`));
const names = new Set();
let py;
const note = () => py.runPython(FILES).split("\n").forEach((name) => names.add(name));
await new Promise((resolve, reject) => {
  servePython({
    pyodide: async (options) => {
      py = await loadPyodide(options);
      note(); // some are forgotten again
      return py;
    },
    indexURL: `${directory}/pyodide`,
    guest: new Uint8Array(readFileSync(`${directory}/guest.zip`)),
    memoryBytes: 512 << 20,
    post: resolve, // it is ready
    program: new Promise(() => {}),
  }).catch(reject);
});
note();
console.log([...names].sort().join("\n"));
