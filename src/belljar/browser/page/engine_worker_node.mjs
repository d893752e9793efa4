// Node's thread for one guest program.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parentPort } from "node:worker_threads";
import { loadPyodide } from "./pyodide/pyodide.mjs";
import { servePython } from "./engine_python.mjs";

const program = new Promise((resolve) => parentPort.once("message", (data) => resolve(data.program)));
await servePython({
  pyodide: loadPyodide,
  indexURL: fileURLToPath(new URL("pyodide/", import.meta.url)),
  guest: new Uint8Array(readFileSync(new URL("guest.zip", import.meta.url))),
  memoryBytes: 512 << 20,
  post: (message) => parentPort.postMessage(message),
  program,
  end: () => {
    parentPort.postMessage({ ended: true });
    parentPort.close();
  },
});
