// A page's worker for one program of `node`, or one interpreter of the page's own.
import { forgetGlobals } from "./engine_globals.mjs";
import { serveJs } from "./engine_js.mjs";
import { Messages } from "./engine_messages.mjs";

const here = new URL(".", import.meta.url);
const messages = new Messages();
self.onmessage = ({ data }) => messages.take(data);
await serveJs({
  load: async (name) => {
    const response = await fetch(new URL(name, here));
    if (!response.ok) throw new Error(`${name}: ${response.status} ${response.statusText}`);
    return new Uint8Array(await response.arrayBuffer());
  },
  post: (message) => self.postMessage(message),
  program: messages.program.then((program) => {
    forgetGlobals();
    return program;
  }),
  end: () => {
    self.postMessage({ ended: true });
    self.close();
  },
});
