// The thread that a sandbox in Node lives in.
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { parentPort, workerData } from "node:worker_threads";
import { loadPyodide } from "./pyodide/pyodide.mjs";
import { boot } from "./boot.mjs";
import { Engines } from "./engines.mjs";
import { startEngine } from "./start_engine_node.mjs";

const early = [];
let session = null;
parentPort.on("message", (data) => (session === null ? early.push(data) : session.take(data)));
session = await boot({
  load: async (name) => new Uint8Array(await readFile(new URL(name, import.meta.url))),
  pyodide: loadPyodide,
  indexURL: fileURLToPath(new URL("pyodide/", import.meta.url)),
  post: (message) => parentPort.postMessage(message),
  engines: new Engines(startEngine, workerData.trustPython),
  interrupt: workerData.interrupt,
});
early.forEach((data) => session.take(data));
