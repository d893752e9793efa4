// A WebAssembly program of the sandbox: one file, its memory bounded, its system calls WASI's.
import { Client } from "./calls.mjs";
import { Ended, Wasi } from "./engine_wasi.mjs";
import { limitMemory } from "./engine_wasm_memory.mjs";

const PAGE = 65536;
const MEMORY_MAX = 1 << 30; // whatever the sandbox may have: a page has not more to give
const CANNOT_EXECUTE = 126;
const ABORTED = 6;
const DIRECTORY = 64; // below a program's data, where it keeps nothing
const DATA_START = 1024;
const text = new TextEncoder();

/**
 * @param post    (Uint8Array | {ready}) => void: to the kernel's worker
 * @param program a promise of {ring, bytes}: memory shared with the kernel, and the file
 * @param end     () => void: ends this worker
 */
export async function serveWasm({ post, program, end }) {
  post({ ready: true });
  const { ring, bytes } = await program;
  const client = new Client(post, ring);
  const start = client.start();
  const say = (words) => client.post("write", 2, new Uint8Array([...(start.argv[0] ?? []), ...text.encode(`: ${words}\n`)]));
  const [code, signal] = run(client, start, bytes, say);
  client.post("exit", code & 0xff, signal, client.cpuNanoseconds);
  end();
}

function run(client, start, bytes, say) {
  const wasi = new Wasi(client, start);
  let instance;
  try {
    instance = instantiate(bytes, wasi, Math.min(start.numbers[7], MEMORY_MAX));
  } catch (error) {
    if (error instanceof Ended) return [error.code, 0];
    if (error instanceof WebAssembly.RuntimeError || error instanceof RangeError) return trapped(error, say);
    say(`cannot execute: ${error.message}`);
    return [CANNOT_EXECUTE, 0];
  }
  try {
    enterDirectory(instance.exports, start.cwd);
    instance.exports._start();
    return [0, 0];
  } catch (error) {
    if (error instanceof Ended) return [error.code, 0];
    if (error instanceof WebAssembly.RuntimeError || error instanceof RangeError || error instanceof WebAssembly.Exception) return trapped(error, say);
    throw error;
  }
}

// Have a program begin in a directory, if it says where its C library keeps that (engines/wasm/template_host.py).
function enterDirectory({ memory, __wasilibc_cwd: pointer }, path) {
  if (!(pointer instanceof WebAssembly.Global)) return;
  let place = DIRECTORY;
  if (path.length >= DATA_START - place) {
    place = memory.buffer.byteLength;
    memory.grow(1);
  }
  new Uint8Array(memory.buffer, place, path.length + 1).set([...path, 0]);
  new DataView(memory.buffer).setUint32(pointer.value >>> 0, place, true);
}

function trapped(error, say) {
  say(`ended by a trap: ${error.message ?? "an exception that nobody caught"}`);
  return [0, ABORTED];
}

function instantiate(bytes, wasi, memoryBytes) {
  const module = new WebAssembly.Module(limitMemory(bytes, Math.floor(memoryBytes / PAGE)));
  const known = { wasi_snapshot_preview1: wasi.functions(), belljar: { call: (...given) => wasi.hostCall(...given) } };
  for (const { module: from, name } of WebAssembly.Module.imports(module)) {
    if (!Object.hasOwn(known, from) || !Object.hasOwn(known[from], name)) throw new WebAssembly.LinkError(`it wants ${from}.${name}, which is not there`);
  }
  const exported = WebAssembly.Module.exports(module);
  const has = (name, kind) => exported.some((each) => each.name === name && each.kind === kind);
  if (!has("_start", "function") || !has("memory", "memory")) throw new WebAssembly.LinkError("it is no WASI program: it exports no _start and memory");
  const instance = new WebAssembly.Instance(module, known);
  wasi.memory = instance.exports.memory;
  return instance;
}
