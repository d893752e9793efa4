// How Node, or a sandbox's thread in it, starts a thread for guest code.
import { Worker } from "node:worker_threads";

export function startEngine(script, onMessage) {
  const worker = new Worker(new URL(script.replace(".mjs", "_node.mjs"), import.meta.url), { stdout: true, stderr: true });
  worker.on("message", onMessage);
  worker.on("error", () => onMessage({ ended: true }));
  worker.on("exit", () => onMessage({ ended: true }));
  return { post: (message) => worker.postMessage(message), terminate: () => void worker.terminate() };
}
