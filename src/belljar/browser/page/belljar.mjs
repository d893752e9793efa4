// belljar in a page. `const sandbox = await Sandbox.create(); await sandbox.exec("echo hello")`
import { bridged } from "./bridged.mjs";
import { Sandbox as Core } from "./sandbox.mjs";
import { startEngine } from "./start_engine.mjs";

export * from "./errors.mjs";
export { snapshots } from "./snapshots.mjs";

const here = new URL(".", import.meta.url);

export class Sandbox extends Core {
  /** A new sandbox in a worker of its own. `bridge`: the address of a built page of another origin, where it lives instead. */
  static async create({ bridge, ...options } = {}) {
    checkBrowser();
    return Core.open(bridge === undefined ? browser : bridged(new URL(bridge, globalThis.location.href)), options);
  }

  /** A sandbox that goes on from a snapshot. */
  static restore(snapshot, options = {}) {
    return Sandbox.create({ ...options, snapshot });
  }
}

function checkBrowser() {
  if (!("Suspending" in WebAssembly)) throw new Error("belljar needs WebAssembly JSPI: Chrome or Edge 137, or newer");
}

const browser = {
  startEngine,
  start({ onMessage, onDeath }) {
    const worker = new Worker(new URL("worker.mjs", here), { type: "module" });
    worker.onmessage = ({ data }) => (data.died === undefined ? onMessage(data) : onDeath(data.died));
    worker.onerror = (event) => onDeath(event.message ?? "its worker could not be loaded");
    const interrupt = globalThis.crossOriginIsolated ? new SharedArrayBuffer(1) : null;
    worker.postMessage({ start: { interrupt } });
    return {
      interrupt,
      post: (message) => worker.postMessage(message),
      terminate: () => worker.terminate(),
    };
  },
};
