// `sandbox.js`: a JavaScript interpreter that its owner drives (belljar/api/js.py). It is QuickJS in a worker of its own, with no
// files, commands or network but what its owner gives it; its state stays from run to run.
import { SandboxError } from "./errors.mjs";
import { dumps, loads } from "./values.mjs";

const SCRIPT = "engine_worker_js.mjs";
const DEFAULTS = { cpuMs: 30_000, wallMs: 60_000, memoryMb: 256, maxBridgeCalls: 10_000, maxBridgeBytes: 64 << 20 };
const GRACE = 3000; // milliseconds that a worker has to say that its time is over; then it is ended
const LIMITS = {
  cpu_ms: ["CPU_LIMIT", ({ cpuMs }) => `the run used more than ${cpuMs} ms of processor time`],
  wall_ms: ["WALL_LIMIT", ({ wallMs }) => `the run took longer than ${wallMs} ms`],
  unsettled: ["WALL_LIMIT", () => "the run waits for a promise that nothing is left to settle"],
  memory_mb: ["MEMORY_LIMIT", ({ memoryMb }) => `the run needed more than ${memoryMb} MB`],
  stack: ["CRASHED", () => "the run's calls are nested too deep for the engine's stack"],
  max_bridge_bytes: ["BRIDGE_LIMIT", ({ maxBridgeBytes }) => `more than ${maxBridgeBytes} bytes to and from functions of the owner`],
  max_bridge_calls: ["BRIDGE_LIMIT", ({ maxBridgeCalls }) => `more than ${maxBridgeCalls} calls of functions of the owner`],
  output_bytes: ["OUTPUT_LIMIT", () => "the run said more than its sandbox may"],
  engine: ["CRASHED", () => "the engine gave up"],
};
const SURVIVED = ["cpu_ms", "unsettled"]; // limits after which the variables are as the run left them
const CODES = ["SYNTAX_ERROR", "RUNTIME_ERROR"];
const decoder = new TextDecoder();

export class JsInterpreter {
  #start;
  #tools;
  #outputBytes;
  #fetch;
  #engine = null; // {post, terminate, ready, runs, functions}
  #run = null; // the one under way
  #turn = Promise.resolve();
  #closed = null;

  /**
   * @param start (script, onMessage) => {post, terminate}: a worker
   * @param tools a Map of functions that code may call
   * @param fetch a function (url, {method, headers, body}) for the guest's fetch(), or null: there is no network
   */
  constructor(start, tools, outputBytes, fetch) {
    this.#start = start;
    this.#tools = tools;
    this.#outputBytes = outputBytes;
    this.#fetch = fetch;
  }

  /**
   * Run code; `value` of the result is its last expression. What the code did is in the result, never raised.
   * `globals`: plain values, and functions of yours that the code may call; they stay.
   */
  run(code, options = {}) {
    if (typeof code !== "string") throw new TypeError("code must be a string");
    const { globals = {}, onStdout, onStderr, ...given } = options;
    for (const [name, value] of Object.entries(given)) {
      if (!(name in DEFAULTS)) throw new TypeError(`js.run has no option ${JSON.stringify(name)}; there are globals, onStdout, onStderr, ${Object.keys(DEFAULTS).join(", ")}`);
      if (typeof value !== "number" || !(value > 0)) throw new RangeError(`${name} must be a positive number`);
    }
    const mine = this.#turn.then(() => this.#drive(code, globals, { ...DEFAULTS, ...given }, { 1: onStdout, 2: onStderr }));
    this.#turn = mine.catch(() => {});
    return mine;
  }

  /** Forget everything: the next run finds a new interpreter. */
  reset() {
    this.#engine?.terminate();
    this.#engine = null;
    this.#run?.fail("CRASHED", "Crashed", "the interpreter was reset");
  }

  /** End it: a run that is under way, and each later one, raises the error. */
  close(error) {
    this.#closed = error;
    this.#run?.reject(error);
    this.#engine?.terminate();
    this.#engine = null;
  }

  async #drive(code, globals, limits, heard) {
    if (this.#closed !== null) throw this.#closed;
    const began = performance.now();
    const isNew = this.#engine === null;
    const engine = this.#engine ??= this.#open();
    const functions = isNew ? Object.fromEntries(this.#tools) : {};
    if (isNew && this.#fetch !== null) functions.fetch = this.#fetch;
    const values = {};
    for (const [name, value] of Object.entries(globals)) (typeof value === "function" ? functions : values)[name] = value;
    Object.assign(engine.functions, functions);
    const run = this.#run = new Run(++engine.runs, limits, this.#outputBytes, heard);
    let timer;
    try {
      const message = `{"op":"run","run":${run.number},"code":${JSON.stringify(code)},"mode":"repl","file":"run.js","wasm":false,` +
        `"globals":${JSON.stringify(Object.keys(functions))},"values":${dumps(values)},"limits":${JSON.stringify({
          cpu_ms: limits.cpuMs, wall_ms: limits.wallMs, memory_mb: limits.memoryMb, max_bridge_bytes: limits.maxBridgeBytes, output_bytes: this.#outputBytes,
        })}}`;
      await Promise.race([engine.ready, run.ended]);
      engine.post({ message });
      timer = setTimeout(() => run.limit("wall_ms"), Math.min(limits.wallMs + GRACE, 0x7fffffff));
      const end = await run.ended;
      if (!end.survives && this.#engine === engine) {
        engine.terminate();
        this.#engine = null;
      }
      return { ...end.result, stdout: run.streams[1], stderr: run.streams[2], outputs: [], durationMs: performance.now() - began };
    } finally {
      clearTimeout(timer);
      if (this.#run === run) this.#run = null;
    }
  }

  #open() {
    const engine = { runs: 0, functions: Object.create(null) };
    let ready;
    engine.ready = new Promise((resolve) => { ready = resolve; });
    const worker = this.#start(SCRIPT, (message) => {
      const run = this.#engine === engine ? this.#run : null;
      if (message.ready !== undefined) ready();
      else if (message.output !== undefined) run?.say(...message.output);
      else if (message.message !== undefined) this.#hear(engine, run, message.message);
      else if (message.failure !== undefined) run?.reject(new SandboxError(String(message.failure)));
      else if (message.ended !== undefined) {
        if (this.#engine === engine) this.#engine = null;
        run?.fail("CRASHED", "Crashed", "the engine's worker ended");
      }
    });
    return Object.assign(engine, worker);
  }

  #hear(engine, run, text) {
    if (run === null) return;
    let message;
    try {
      message = loads(text);
    } catch {
      return run.fail("CRASHED", "ProtocolError", "the engine said what makes no sense");
    }
    if (message.op === "limit") return run.limit(String(message.limit));
    if (message.run !== run.number) return undefined; // of one that is over
    if (message.op === "done") return run.finish(message);
    return message.op === "call" ? this.#answer(engine, run, message, text.length) : undefined;
  }

  async #answer(engine, run, { id, name, args }, size) {
    if (!run.charge(size, 1)) return;
    let answer;
    try {
      const called = engine.functions[name];
      if (called === undefined) throw new Error(`no function ${name}`);
      answer = `{"op":"answer","id":${Number(id)},"value":${dumps(await called(...args))}}`;
    } catch (error) {
      answer = dumps({ op: "answer", id, error: { name: String(error?.name ?? "Error"), message: String(error?.message ?? error) } });
    }
    if (this.#run === run && this.#engine === engine && run.charge(answer.length, 0)) engine.post({ message: answer });
  }
}

class Run {
  #limits;
  #room;
  #bridge = { calls: 0, bytes: 0 };
  #heard;
  #end;
  streams = { 1: "", 2: "" };

  constructor(number, limits, outputBytes, heard) {
    this.number = number;
    this.#limits = limits;
    this.#room = outputBytes;
    this.#heard = heard;
    this.ended = new Promise((resolve, reject) => {
      this.#end = resolve;
      this.reject = reject;
    });
  }

  say(stream, data) {
    if (stream !== 1 && stream !== 2) return;
    this.#room -= data.length;
    if (this.#room < 0) return this.limit("output_bytes");
    this.streams[stream] += decoder.decode(data);
    this.#heard[stream]?.(data);
  }

  charge(bytes, calls) {
    this.#bridge.calls += calls;
    this.#bridge.bytes += bytes;
    if (this.#bridge.calls > this.#limits.maxBridgeCalls) this.limit("max_bridge_calls");
    else if (this.#bridge.bytes > this.#limits.maxBridgeBytes) this.limit("max_bridge_bytes");
    else return true;
    return false;
  }

  finish({ ok, exports, unsent, error }) {
    if (ok === true && isObject(exports) && isObject(unsent)) {
      const value = Object.hasOwn(exports, "default") ? exports.default : null;
      return this.#end({ survives: true, result: { ok: true, value, exports, unsent, error: null } });
    }
    if (!CODES.includes(error?.code)) return this.fail("CRASHED", "ProtocolError", "the engine said what makes no sense");
    const { code, name, message, stack } = error;
    return this.#failed({ code, name: String(name), message: String(message), stack: String(stack) }, true);
  }

  limit(name) {
    const [code, words] = LIMITS[name] ?? LIMITS.engine;
    this.#failed({ code, name, message: words(this.#limits), stack: "" }, SURVIVED.includes(name));
  }

  fail(code, name, message) {
    this.#failed({ code, name, message, stack: "" }, false);
  }

  #failed(error, survives) {
    this.#end({ survives, result: { ok: false, value: null, exports: {}, unsent: {}, error } });
  }
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Map);
