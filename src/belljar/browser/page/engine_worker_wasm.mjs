// A page's worker for one WebAssembly program.
import { forgetGlobals } from "./engine_globals.mjs";
import { serveWasm } from "./engine_wasm.mjs";

const program = new Promise((resolve) => { self.onmessage = ({ data }) => resolve(data.program); });
forgetGlobals();
await serveWasm({
  post: (message) => self.postMessage(message),
  program,
  end: () => {
    self.postMessage({ ended: true });
    self.close();
  },
});
