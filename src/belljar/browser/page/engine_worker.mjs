// A page's worker for one guest program.
import { loadPyodide } from "./pyodide/pyodide.mjs";
import { servePython } from "./engine_python.mjs";

const here = new URL(".", import.meta.url).href;
const program = new Promise((resolve) => { self.onmessage = ({ data }) => resolve(data.program); });
const response = await fetch(new URL("guest.zip", here));
await servePython({
  pyodide: loadPyodide,
  indexURL: new URL("pyodide/", here).href,
  guest: new Uint8Array(await response.arrayBuffer()),
  memoryBytes: 512 << 20,
  post: (message) => self.postMessage(message),
  program,
  end: () => {
    self.postMessage({ ended: true });
    self.close();
  },
});
