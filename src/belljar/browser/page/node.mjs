// belljar in Node 24 or newer, in process: import { Sandbox } from "belljar".
import { setFlagsFromString } from "node:v8";
import { Worker } from "node:worker_threads";
import { Sandbox as Core } from "./sandbox.mjs";
import { startEngine } from "./start_engine_node.mjs";

export * from "./errors.mjs";
export { snapshots } from "./snapshots.mjs";

export class Sandbox extends Core {
  /** As in a page; `trustPython`: let guest Python run, in a thread of this process, without a wall around it. */
  static create({ trustPython = false, ...options } = {}) {
    return Core.open(platform(trustPython === true), options);
  }

  static restore(snapshot, options = {}) {
    return Sandbox.create({ ...options, snapshot });
  }
}

const platform = (trustPython) => ({
  startEngine,
  start({ onMessage, onDeath }) {
    setFlagsFromString("--experimental-wasm-jspi"); // for the threads to come: Node 24 has it behind this flag
    const interrupt = new SharedArrayBuffer(1);
    const worker = new Worker(new URL("worker_node.mjs", import.meta.url), { workerData: { interrupt, trustPython }, stdout: true, stderr: true });
    worker.on("message", (data) => (data.died === undefined ? onMessage(data) : onDeath(data.died)));
    worker.on("error", (error) => onDeath(error.message));
    worker.on("exit", (code) => onDeath(`its worker ended with code ${code}`));
    return {
      interrupt,
      post: (message) => worker.postMessage(message),
      terminate: () => void worker.terminate(),
    };
  },
});
