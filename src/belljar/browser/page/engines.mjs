// Workers for guest programs, one for each program that runs; each ends by terminate(), whatever it does.
import { exceededFrame, isWaiting, makeRing, RingWriter, SIGNAL } from "./calls.mjs";

const PYTHON = "engine_worker.mjs";
const WASM = "engine_worker_wasm.mjs";
const SCRIPTS = { python: PYTHON, "python-data": PYTHON, node: "engine_worker_js.mjs", wasm: WASM };
const MISSING = {
  untrusted: "runs in a thread of this process, from where code could reach all of Node: if you trust it, give " +
    "Sandbox.create({trustPython: true}); else use belljar's Python package, which has a wall around it",
  unshared: "needs a page that is cross-origin isolated (COOP and COEP headers): see docs/browser.md",
  kind: "does not run in a page: use belljar on a machine of yours",
};
const PROGRAMS_BYTES = 64 << 20; // of WebAssembly files that are kept for their next start
const TICK = 50; // milliseconds between two looks at who computes
const LONGEST = 1000; // milliseconds that one look may count: the machine may have slept

export class Engines {
  #start;
  #walled;
  #spares = new Map(); // by script: an engine that is being made, or waits
  #engines = new Map();
  #programs = new Map(); // WebAssembly files by their digests, the one that was used last at the end
  #next = 1;
  #ticking = null;
  #looked = 0;

  /**
   * @param start  (script, onMessage) => {post(message), terminate()}
   * @param walled whether a policy keeps workers from everything but their own files; else guest Python is trusted
   */
  constructor(start, walled) {
    this.#start = start;
    this.#walled = walled;
  }

  #missing(kind) {
    if (!(kind in SCRIPTS)) return MISSING.kind;
    if (!this.#walled && SCRIPTS[kind] === PYTHON) return MISSING.untrusted;
    return typeof SharedArrayBuffer === "undefined" ? MISSING.unshared : null;
  }

  /** Keep a WebAssembly file: it is started by its digest. */
  keepProgram(digest, bytes) {
    this.#programs.set(digest, bytes);
    let size = [...this.#programs.values()].reduce((sum, each) => sum + each.length, 0);
    for (const [name, each] of this.#programs) {
      if (size <= PROGRAMS_BYTES || name === digest) break;
      this.#programs.delete(name);
      size -= each.length;
    }
  }

  hasProgram(digest) {
    return this.#programs.has(digest);
  }

  /** The number of a new engine of a kind, or 0 if there is none; `receive` is told what it sends, undefined at its end. */
  open(kind, options, receive) {
    if (this.#missing(kind) !== null) return 0;
    const script = SCRIPTS[kind];
    const engine = this.#spares.get(script) ?? this.#make(script);
    this.#spares.delete(script);
    const number = this.#next++;
    const ring = makeRing();
    const interrupt = new SharedArrayBuffer(1);
    const bytes = this.#programs.get(options.program);
    Object.assign(engine, {
      number, receive, ring, writer: new RingWriter(ring), interrupt: new Uint8Array(interrupt),
      usedMs: 0, cpuMs: (options.cpu_seconds ?? Infinity) * 1000,
    });
    this.#engines.set(number, engine);
    engine.worker.post({ program: { ring, interrupt, bytes } });
    this.#ticking ??= this.#watch();
    setTimeout(() => this.prepare(script), 0);
    return number;
  }

  /** Have an engine ready before it is asked for. */
  prepare(script) {
    if (!this.#spares.has(script)) this.#spares.set(script, this.#make(script));
  }

  #make(script) {
    const engine = { number: 0, ready: false, receive: () => {} };
    engine.worker = this.#start(script, (message) => {
      if (message instanceof Uint8Array) engine.receive(engine.number, message);
      else if (message.ready !== undefined) engine.ready = true;
      else if (message.ended !== undefined) {
        if (this.#spares.get(script) === engine) this.#spares.delete(script);
        this.#engines.delete(engine.number);
        engine.receive(engine.number, undefined);
      }
    });
    return engine;
  }

  // Nobody tells a worker's processor time: those that do not wait for their kernel are taken to compute.
  #watch() {
    this.#looked = performance.now();
    return setInterval(() => {
      const now = performance.now();
      const passed = Math.min(now - this.#looked, LONGEST);
      this.#looked = now;
      for (const engine of this.#engines.values()) {
        if (engine.ready && !isWaiting(engine.ring)) engine.usedMs += passed;
        if (engine.usedMs > engine.cpuMs) this.#exceed(engine);
      }
      if (this.#engines.size === 0) {
        clearInterval(this.#ticking);
        this.#ticking = null;
      }
    }, TICK);
  }

  #exceed(engine) {
    this.#engines.delete(engine.number);
    engine.worker.terminate();
    engine.receive(engine.number, exceededFrame("cpu_seconds", Math.round(engine.usedMs * 1e6)));
  }

  refusal(kind) {
    return `${kind} ${this.#missing(kind) ?? MISSING.kind}`;
  }

  send(number, data) {
    const engine = this.#engines.get(number);
    if (engine === undefined) return;
    engine.writer.put(data);
    if (data.length === 20 && isSignal(data)) engine.interrupt[0] = data[12];
  }

  end(number) {
    this.#engines.get(number)?.worker.terminate();
    this.#engines.delete(number);
  }
}

// Whether a frame is the event that tells of a signal: an engine that computes does not look for it.
function isSignal(data) {
  const view = new DataView(data.buffer, data.byteOffset);
  return view.getUint32(4, true) === 0 && view.getInt32(8, true) === SIGNAL;
}
