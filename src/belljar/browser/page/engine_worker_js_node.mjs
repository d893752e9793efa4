// Node's thread for one program of the sandbox's `node`, or one interpreter of the owner's.
import { readFile } from "node:fs/promises";
import { parentPort } from "node:worker_threads";
import { serveJs } from "./engine_js.mjs";
import { Messages } from "./engine_messages.mjs";

const messages = new Messages();
parentPort.on("message", (data) => messages.take(data));
await serveJs({
  load: async (name) => new Uint8Array(await readFile(new URL(name, import.meta.url))),
  post: (message) => parentPort.postMessage(message),
  program: messages.program,
  end: () => {
    parentPort.postMessage({ ended: true });
    parentPort.close();
  },
});
