// The worker that a sandbox in a page lives in: new Worker("worker.mjs", {type: "module"}).
import { loadPyodide } from "./pyodide/pyodide.mjs";
import { boot } from "./boot.mjs";
import { Engines } from "./engines.mjs";
import { startEngine } from "./start_engine.mjs";

const here = new URL(".", import.meta.url).href;

async function load(name) {
  const response = await fetch(new URL(name, here));
  if (!response.ok) throw new Error(`${name}: ${response.status} ${response.statusText}`);
  return new Uint8Array(await response.arrayBuffer());
}

const early = []; // what came before the session was there
let session = null;
self.onmessage = async ({ data }) => {
  if (data.start === undefined) return session === null ? early.push(data) : session.take(data);
  try {
    session = await boot({
      load,
      pyodide: loadPyodide,
      indexURL: new URL("pyodide/", here).href,
      post: (message) => self.postMessage(message, transferred(message)),
      engines: new Engines(startEngine, true),
      interrupt: data.start.interrupt,
    });
    early.forEach((message) => session.take(message));
  } catch (error) {
    self.postMessage({ died: String(error?.message ?? error) });
  }
};

const transferred = (message) => Object.values(message).filter((part) => part instanceof Uint8Array).map((part) => part.buffer);
