// An interpreter of a sandbox that its owner drives: state stays from run to run (belljar/api/dialogue.py).
import { SandboxError } from "./errors.mjs";
import { toBytes } from "./wire.mjs";
import { dumps, loads } from "./values.mjs";

const CONTROL_IN = 3;
const WALL_SECONDS = 60;
const decoder = new TextDecoder();

export class Interpreter {
  #open;
  #argv;
  #tools;
  #running = null;
  #runs = 0;
  #run = null; // the one under way
  #turn = Promise.resolve();
  #line = "";

  /** @param open (argv, onStream(number, bytes)) => Running */
  constructor(open, argv, tools) {
    this.#open = open;
    this.#argv = argv;
    this.#tools = tools;
  }

  /**
   * Run code; `value` of the result is its last expression. Errors of the code are in `error`, never raised.
   * `globals`: plain values, and functions of yours that the code may call.
   */
  run(code, { globals = {}, wallMs = WALL_SECONDS * 1000, onStdout, onStderr } = {}) {
    if (typeof code !== "string") throw new TypeError("code must be a string");
    const mine = this.#turn.then(() => this.#drive(code, globals, wallMs, { 1: onStdout, 2: onStderr }));
    this.#turn = mine.catch(() => {});
    return mine;
  }

  /** Raise KeyboardInterrupt in the code that runs. */
  interrupt() {
    this.#running?.send(["signal", this.#running.id, 2, false]);
  }

  /** Forget everything: the next run finds a new interpreter. */
  reset() {
    this.#running?.send(["signal", this.#running.id, 9, true]);
    this.#running = null;
  }

  async #drive(code, globals, wallMs, heard) {
    const began = performance.now();
    const functions = { ...(this.#running === null ? Object.fromEntries(this.#tools) : {}) };
    const values = {};
    for (const [name, value] of Object.entries(globals)) (typeof value === "function" ? functions : values)[name] = value;
    if (this.#running === null) this.#start(code);
    const running = this.#running;
    this.#runs += 1;
    const run = this.#run = { number: this.#runs, stdout: "", stderr: "", outputs: [], functions: { ...this.#run?.functions, ...functions }, heard };
    const done = new Promise((resolve) => { run.done = resolve; });
    const message = `{"op":"run","run":${run.number},"code":${dumps(code)},"mode":"repl","file":"<run ${run.number}>",` +
      `"globals":${dumps(Object.keys(functions))},"values":${dumps(values)}${heard[1] || heard[2] ? ',"live":true' : ""}}`;
    this.#write(message);
    const timer = setTimeout(() => {
      run.done({ ok: false, error: { code: "WALL_LIMIT", name: "WallLimit", message: `the run took more than ${wallMs} ms`, stack: "" } });
      this.reset();
    }, wallMs);
    const lost = running.ended.then((end) => {
      if (this.#running === running) this.#running = null;
      const said = run.stderr.trim() || `its interpreter ended (${end.limit ?? (end.signal ? `signal ${end.signal}` : `code ${end.code}`)})`;
      if ([126, 127].includes(end.code)) throw new SandboxError(said);
      return { ok: false, error: { code: end.limit === "memory_bytes" ? "MEMORY_LIMIT" : end.limit === "cpu_seconds" ? "CPU_LIMIT" : "CRASHED", name: "Crashed", message: said, stack: "" } };
    });
    try {
      const end = await Promise.race([done, lost]);
      const exports = end.exports ?? {};
      return {
        ok: end.ok, value: exports.default ?? null, exports, error: end.error ?? null, stdout: run.stdout, stderr: run.stderr,
        outputs: run.outputs, durationMs: performance.now() - began,
      };
    } finally {
      clearTimeout(timer);
    }
  }

  #start(code) {
    this.#line = "";
    this.#runs = 0;
    this.#run = null;
    const beginning = code.slice(0, 4096).replaceAll("\0", " ");
    this.#running = this.#open([...this.#argv, beginning], (stream, data) => (stream === 4 ? this.#hear(data) : this.#say(stream, data)));
    this.#running.ended.catch(() => {});
  }

  #write(line) {
    this.#running?.send(["input", this.#running.id, toBytes(`${line}\n`), CONTROL_IN]);
  }

  #say(stream, data) {
    const run = this.#run;
    if (run === null) return;
    run[stream === 1 ? "stdout" : "stderr"] += decoder.decode(data);
    run.heard[stream]?.(data);
  }

  // Lines of the interpreter: the number of its run, then a message.
  #hear(data) {
    this.#line += decoder.decode(data);
    const lines = this.#line.split("\n");
    this.#line = lines.pop();
    for (const line of lines) {
      const space = line.indexOf(" ");
      const run = this.#run;
      if (run === null || line.slice(0, space) !== String(run.number)) continue; // of none, or of one that was given up
      let message;
      try {
        message = loads(line.slice(space + 1));
      } catch {
        run.done({ ok: false, error: { code: "CRASHED", name: "Crashed", message: "the interpreter broke the protocol", stack: "" } });
        return this.reset();
      }
      if (message.op === "output") run.outputs.push({ mime: String(message.mime), data: message.data });
      else if (message.op === "call") this.#answer(run, message);
      else if (message.op === "done") run.done(message);
    }
  }

  async #answer(run, { id, name, args, kwargs }) {
    let answer;
    try {
      const tool = Object.hasOwn(run.functions, name) ? run.functions[name] : null;
      if (tool === null) throw new Error(`no function ${name}`);
      const named = Object.keys(kwargs ?? {}).length ? [kwargs] : [];
      answer = `{"op":"answer","id":${dumps(id)},"value":${dumps(await tool(...args, ...named))}}`;
    } catch (error) {
      answer = dumps({ op: "answer", id, error: { name: String(error?.name ?? "Error"), message: String(error?.message ?? error) } });
    }
    if (run === this.#run) this.#write(answer);
  }
}
