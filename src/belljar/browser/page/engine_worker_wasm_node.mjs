// Node's thread for one WebAssembly program.
import { parentPort } from "node:worker_threads";
import { serveWasm } from "./engine_wasm.mjs";

const program = new Promise((resolve) => parentPort.once("message", (data) => resolve(data.program)));
await serveWasm({
  post: (message) => parentPort.postMessage(message),
  program,
  end: () => {
    parentPort.postMessage({ ended: true });
    parentPort.close();
  },
});
