// In a frame of an origin of its own: starts a sandbox's workers there for the page around it, if that page may have them.
// Nothing but the workers' messages passes, by a port that only these two have.
import { startEngine } from "./start_engine.mjs";

const TICK = 20;
const INTERPRETER = "engine_worker_js.mjs"; // of `sandbox.js`, which the page itself drives

const { origins } = await (await fetch("embedders.json")).json();

let started = false;
window.addEventListener("message", (event) => {
  if (started || event.source !== window.parent || !origins.includes(event.origin)) return;
  const [port] = event.ports;
  if (event.data?.belljar !== "start" || port === undefined) return;
  started = true;
  const worker = new Worker("worker.mjs", { type: "module" });
  const interrupt = globalThis.crossOriginIsolated ? new SharedArrayBuffer(1) : null;
  let ticking = interrupt === null;
  worker.onmessage = ({ data }) => {
    port.postMessage(data);
    if (ticking) return;
    ticking = true; // once it is there; from here, because shared memory does not leave an origin
    setInterval(() => Atomics.store(new Int8Array(interrupt), 0, 2), TICK);
  };
  worker.onerror = (error) => port.postMessage({ died: error.message ?? "its worker could not be loaded" });
  const interpreters = new Map();
  const drive = ({ interpreter: number, message, end }) => {
    const known = interpreters.get(number);
    if (end) {
      known?.terminate();
      interpreters.delete(number);
    } else if (message !== undefined) known?.post({ message });
    else interpreters.set(number, startEngine(INTERPRETER, (said) => port.postMessage({ interpreter: number, said })));
  };
  port.onmessage = ({ data }) => {
    if (data.interpreter !== undefined) drive(data);
    else worker.postMessage(data.frame === undefined ? { net: data.net } : { frame: data.frame });
  };
  worker.postMessage({ start: { interrupt } });
});
for (const origin of origins) window.parent.postMessage({ belljar: "bridge" }, origin); // only one of them is there to hear it
