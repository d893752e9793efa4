// Guest Python: a Pyodide of its own, which waits for a program, runs it, and ends.
import { unpackStored } from "./archive.mjs";
import { Client } from "./calls.mjs";
import { installFiles } from "./engine_fs.mjs";
import { forgetGlobals } from "./engine_globals.mjs";
import { limitModules } from "./engine_modules.mjs";

const GUEST = "/lib/belljar-guest";
const COMPILED = "compiled.json"; // digests of the compiled modules that the page's owner hosts (packages_host.py)
const EXIT = 1001;
const PROCESSOR = 1006;
const OWN_CALLS = 1000;
const ENOENT = 2;

/**
 * @param pyodide   loadPyodide
 * @param guest     the guest's modules, as a zip archive
 * @param post      (Uint8Array | {ready}) => void: to the kernel's worker
 * @param program   a promise of {ring, interrupt}: memory shared with the kernel, once there is a program
 * @param end       () => void: ends this worker
 */
export async function servePython({ pyodide, indexURL, guest, memoryBytes, post, program, end }) {
  limitMemory(memoryBytes);
  const py = await pyodide({ indexURL, jsglobals: new Map(), stdout: () => {}, stderr: () => {}, env: { HOME: "/home/agent" } });
  py.FS.mkdirTree(GUEST);
  unpackStored(py.FS, guest, GUEST);
  limitModules(JSON.parse(py.FS.readFile(`${GUEST}/${COMPILED}`, { encoding: "utf8" })));
  let client = null;
  const started = performance.now();
  const status = (number, body = new Uint8Array()) => {
    const answer = new Uint8Array(4 + body.length);
    new DataView(answer.buffer).setInt32(0, number, true);
    answer.set(body, 4);
    return answer;
  };
  const processor = () => BigInt(Math.round((performance.now() - started) * 1e6));
  py.registerJsModule("_belljar_host", {
    call(request) {
      const data = request.toJs();
      request.destroy();
      const number = data[0] | (data[1] << 8);
      if (number === PROCESSOR) return status(0, new Uint8Array(BigInt64Array.of(processor()).buffer));
      if (number === EXIT) {
        const view = new DataView(data.buffer, data.byteOffset);
        client.post("exit", Number(view.getBigInt64(2, true)) & 0xff, view.getBigInt64(10, true), client.cpuNanoseconds);
        end();
        throw new Error("the program has ended");
      }
      if (number >= OWN_CALLS) return status(0);
      if (client === null) return status(ENOENT); // while it waits, there are no files but its own
      const answer = client.request(number, data.subarray(2));
      return status(answer.status, answer.body);
    },
  });
  py.runPython(`import sys; sys.path.insert(0, "${GUEST}"); import _belljar_page; _belljar_page.prepare()`);
  const run = py.pyimport("_belljar_page").run;
  hide(py);
  post({ ready: true });
  const { ring, interrupt } = await program;
  client = new Client(post, ring);
  const start = client.start();
  const ticks = new Uint8Array(interrupt);
  py.setInterruptBuffer(ticks);
  client.onSignal = (number) => { ticks[0] = number; };
  installFiles(py.FS, client);
  forgetGlobals();
  try {
    run(py.toPy([start.argv, start.environment, start.cwd, JSON.stringify(start.options), start.numbers, start.descriptors]));
  } catch (error) {
    client.call("write", 2, new TextEncoder().encode(`Fatal Python error: ${String(error.message).trim().split("\n").at(-1)}\n`));
    client.post("exit", 0, 6, 0);
    end();
  }
}

// The interpreter's memory may grow so far and no farther: then Python raises MemoryError.
function limitMemory(bytes) {
  const grow = WebAssembly.Memory.prototype.grow;
  WebAssembly.Memory.prototype.grow = function limited(pages) {
    if (this.buffer.byteLength + pages * 65536 > bytes) throw new RangeError("the sandbox's memory limit");
    return grow.call(this, pages);
  };
}

// Modules of Pyodide that lead to JavaScript. The wall is the worker's policy; this keeps honest programs from mistakes.
function hide(py) {
  py.runPython(`
import sys
sys.modules["_pyodide._importhook"].jsfinder.jsproxies.clear()
sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "JsFinder"]
for _name in [name for name in sys.modules if name.partition(".")[0] in ("js", "pyodide_js", "pyodide", "_pyodide")]:
    del sys.modules[_name]
del _name
`);
}
