// Starts a session in a worker: Pyodide, belljar's modules, stacks for its fibers. The same in a page's worker and in Node's.
import { unpackStored } from "./archive.mjs";
import { installStacks } from "./stacks.mjs";

const LIBRARY = "/lib/belljar";

/**
 * @param load      (name) => Promise<Uint8Array>: one of this directory's files
 * @param pyodide   loadPyodide of pyodide.mjs
 * @param post      ({frame} | {net} | {died}) => void: to the owner: frames of belljar/abi/wire.py, of belljar/net/wire.py, the
 *                  reason why the session has ended by a fault of its own
 * @param engines   {open, send, end, refusal, hasProgram, keepProgram}: workers for guest programs (engines.mjs)
 * @param interrupt a SharedArrayBuffer that another worker writes ticks to, or null
 * @returns {take}: takes the owner's frames
 */
export async function boot({ load, pyodide, indexURL, post, engines, interrupt }) {
  const died = (text) => post({ died: text });
  const library = load("belljar.zip"); // fetched while Pyodide starts
  const py = await pyodide({ indexURL, stdLibURL: `${indexURL}library.zip`, jsglobals: new Map(), stdout: () => {}, stderr: (line) => died(line) });
  if (!py._module.newJspiSupported) throw new Error("belljar needs WebAssembly JSPI: Chromium 137, Node 24, or newer");
  let ring = null; // ends the hub's wait
  const turn = new MessageChannel();
  let turned = null;
  turn.port1.onmessage = () => turned?.();
  const sleep = (ms) => new Promise((resolve) => {
    let timer;
    ring = () => {
      ring = turned = null;
      clearTimeout(timer);
      resolve();
    };
    if (ms === 0) {
      turned = ring;
      turn.port2.postMessage(0); // a timer of 0 ms takes 4
    } else if (ms !== null) timer = setTimeout(ring, ms);
  });
  installStacks(py, sleep, died);
  const bytes = (data) => {
    const copy = data.toJs();
    data.destroy();
    return copy;
  };
  py.registerJsModule("_page", {
    post: (data) => post({ frame: bytes(data) }),
    post_net: (data) => post({ net: bytes(data) }),
    open_engine: (kind, options) => engines.open(kind, JSON.parse(options), (number, data) => {
      receiveEngine(number, data);
      ring?.();
    }),
    engine_refusal: (kind) => engines.refusal(kind),
    has_program: (digest) => engines.hasProgram(digest),
    keep_program: (digest, data) => engines.keepProgram(digest, bytes(data)),
    send_engine: (number, data) => engines.send(number, bytes(data)),
    end_engine: (number) => engines.end(number),
  });
  py.FS.mkdirTree(LIBRARY);
  unpackStored(py.FS, await library, LIBRARY);
  py.runPython(`import sys; sys.path.insert(0, "${LIBRARY}")`);
  const main = py.pyimport("belljar.browser.inside.main_host");
  const { receive, receive_net: receiveNet, receive_engine: receiveEngine } = main;
  if (interrupt !== null) py.setInterruptBuffer(new Uint8Array(interrupt));
  main.start();
  return {
    take(message) {
      if (message.frame !== undefined) receive(message.frame);
      else if (message.net !== undefined) receiveNet(message.net);
      ring?.();
    },
  };
}
