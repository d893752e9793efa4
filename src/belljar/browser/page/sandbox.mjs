// A sandbox as its owner sees it: the conversation of belljar/abi/wire.py with a worker, whoever runs that.
import { FileError, NotInABrowser, SandboxClosed, SandboxDied, SandboxError } from "./errors.mjs";
import { concat, Files } from "./files.mjs";
import { Interpreter } from "./interpreter.mjs";
import { JsInterpreter } from "./javascript.mjs";
import { Broker, checkNetwork } from "./network.mjs";
import { exitCode, outputStream, Process, Running, Terminal } from "./process.mjs";
import { callTool, runTool } from "./tools.mjs";
import { frame, toBytes, unframe } from "./wire.mjs";

const LIMITS = {
  steps: "steps", cpuSeconds: "cpu_seconds", wallSeconds: "wall_seconds", outputBytes: "output_bytes", processes: "processes",
  depth: "depth", expansionBytes: "expansion_bytes", openFiles: "open_files", fileBytes: "file_bytes", files: "files",
  memoryBytes: "memory_bytes",
};
// What a page's worker has room for; each may be given.
const DEFAULTS = { wall_seconds: 600, cpu_seconds: 60, depth: 150, expansion_bytes: 16 << 20, file_bytes: 256 << 20, files: 200_000 };
const OPTIONS = ["files", "env", "cwd", "user", "hostname", "limits", "network", "tools", "snapshot", "onEvent", "signal"];
const OUTPUT_BYTES = 16 << 20; // of a run of `js`, unless limits say otherwise
const GRACE = 10; // seconds that a worker has to answer after a command's time is over; then it is ended
const TICK = 20; // milliseconds between two interrupts of a worker that is at work
const decoder = new TextDecoder();

export class Sandbox {
  #port; // {post, terminate}: see `platform` below
  #running = new Map();
  #calls = new Map();
  #tools;
  #broker;
  #limits;
  #onEvent;
  #next = 1;
  #closed = null; // the error that every use gets
  #interrupt;
  #ticking = null;

  /**
   * @param platform {start(options) => Promise<{post(message), terminate(), interrupt}>}: how this machine runs a worker;
   *                 options.onMessage takes what the worker posts, options.onDeath why it ended;
   *                 startEngine(script, onMessage) => {post(message), terminate()}: one for an interpreter
   */
  static async open(platform, given = {}) {
    for (const name of Object.keys(given)) {
      if (!OPTIONS.includes(name)) throw new TypeError(`Sandbox.create has no option ${JSON.stringify(name)}; there are ${OPTIONS.join(", ")}`);
    }
    const sandbox = new Sandbox();
    await sandbox.#boot(platform, given);
    return sandbox;
  }

  async #boot(platform, { files = {}, env = {}, cwd = "/workspace", user = "agent", hostname = "belljar", limits, network, tools = {}, snapshot, onEvent, signal }) {
    this.#limits = { ...DEFAULTS, ...checkLimits(limits) };
    this.#tools = checkTools(tools);
    this.#onEvent = onEvent ?? (() => {});
    const grant = checkNetwork(network);
    signal?.throwIfAborted();
    let ready;
    const booted = new Promise((resolve, reject) => { ready = { resolve, reject }; });
    booted.catch(() => {});
    this.#calls.set("ready", ready);
    this.#port = await platform.start({
      onMessage: (message) => this.#take(message),
      onDeath: (why) => this.#die(new SandboxDied(`the sandbox died: ${why}`)),
    });
    this.#interrupt = this.#port.interrupt === null ? null : new Int8Array(this.#port.interrupt);
    signal?.addEventListener("abort", () => this.close());
    this.#broker = new Broker(grant, (data) => this.#port.post({ net: data }), (event) => this.#event(event));
    await booted;
    this.#send(["boot", bytesMap(env), toBytes(cwd), toBytes(user), toBytes(hostname), this.#limits]);
    this.files = new Files((name, ...args) => this.#call(name, ...args));
    if (snapshot !== undefined) await this.#call("restore", toBytes(snapshot, "snapshot"));
    for (const [path, content] of Object.entries(files)) {
      const [data, mode] = Array.isArray(content) ? content : [content, null];
      await this.files.write(path.startsWith("/") ? path : `${cwd}/${path}`, data, { mode });
    }
    for (const name of this.#tools.keys()) await this.#call("tool", toBytes(name));
    this.python = new Interpreter((argv, onStream) => this.#interpret(argv, onStream), ["python3", "--belljar-session"], this.#tools);
    const fetched = grant === null ? null : (url, asked) => this.#broker.fetch(url, asked);
    this.js = new JsInterpreter(platform.startEngine, this.#tools, this.#limits.output_bytes ?? OUTPUT_BYTES, fetched);
  }

  /** Run a command to its end: a string in bash, an array as it is. Whatever it did is in the result. */
  async exec(command, { cwd = null, env = {}, stdin = "", timeout = null, limits, mergeStderr = false, onStdout, onStderr, signal } = {}) {
    signal?.throwIfAborted();
    const began = performance.now();
    const parts = { 1: [], 2: [] };
    const heard = { 1: onStdout, 2: onStderr };
    const grant = (stream, count) => running.send(["credit", running.id, stream, count]);
    const streams = Object.fromEntries([1, 2].map((number) => [number, (data) => {
      parts[number].push(data);
      heard[number]?.(data);
      grant(number, data.length);
    }]));
    const budget = { ...this.#limits, ...checkLimits(limits) };
    if (timeout !== null) {
      if (typeof timeout !== "number" || !(timeout > 0)) throw new RangeError(`timeout must be positive seconds, not ${timeout}`);
      budget.wall_seconds = Math.min(timeout, budget.wall_seconds);
    }
    const running = this.#start(argv(command), { cwd, env, stdin: toBytes(stdin, "stdin"), merge: mergeStderr, live: Boolean(onStdout || onStderr), limits: budget }, streams);
    const kill = () => running.send(["signal", running.id, 9, true]);
    const watchdog = setTimeout(() => this.#die(new SandboxDied(
      `the sandbox died: it did not answer ${GRACE} seconds after a command's time was over`,
    )), Math.min((budget.wall_seconds + GRACE) * 1000, 0x7fffffff));
    signal?.addEventListener("abort", kill);
    try {
      const end = await running.ended;
      signal?.throwIfAborted();
      const [stdout, stderr] = [1, 2].map((number) => concat([...parts[number], number === 1 ? end.stdout : end.stderr]));
      heard[1]?.(end.stdout);
      heard[2]?.(end.stderr);
      const timedOut = timeout !== null && end.limit === "wall_seconds";
      const code = timedOut ? 124 : exitCode(end);
      this.#event({ type: "exec", command, exitCode: code });
      return {
        stdout: decoder.decode(stdout), stderr: decoder.decode(stderr), stdoutBytes: stdout, stderrBytes: stderr, exitCode: code,
        ok: code === 0 && end.limit === null, timedOut, limit: end.limit, truncated: end.truncated, durationMs: performance.now() - began,
      };
    } finally {
      clearTimeout(watchdog);
      signal?.removeEventListener("abort", kill);
    }
  }

  /** Start a command; gives a Process with web streams. Without `stdin`, its input is what you write. */
  async spawn(command, { cwd = null, env = {}, stdin, limits } = {}) {
    const outputs = [1, 2].map((number) => outputStream((count) => running.send(["credit", running.id, number, count])));
    const given = { cwd, env, stdin: stdin === undefined ? null : toBytes(stdin, "stdin"), live: true, limits: { ...this.#limits, ...checkLimits(limits) }, follows: stdin === undefined };
    const running = this.#start(argv(command), given, { 1: outputs[0].put, 2: outputs[1].put });
    finish(running, outputs);
    await running.started;
    return new Process(running, (name, ...args) => this.#call(name, ...args), outputs);
  }

  /** Start a command on a terminal; bash without one. */
  async pty(command = ["bash", "-l"], { cwd = null, env = {}, rows = 24, cols = 80, limits } = {}) {
    const output = outputStream((count) => running.send(["credit", running.id, 1, count]));
    const given = { cwd, env: { TERM: "xterm-256color", ...env }, stdin: null, live: true, size: [rows, cols], limits: { ...this.#limits, wall_seconds: 86_400, ...checkLimits(limits) }, follows: true };
    const running = this.#start(argv(command), given, { 1: output.put });
    finish(running, [output]);
    await running.started;
    return new Terminal(running, output);
  }

  /** All files, environment and settings of this moment as bytes, which `belljar snapshot import` reads, too. */
  async snapshot(label = "") {
    return this.#call("snapshot", label);
  }

  async stats() {
    return Object.fromEntries(await this.#call("stats"));
  }

  fork() {
    throw new NotInABrowser("a page can't copy a worker that runs: use snapshot() and Sandbox.create({snapshot})");
  }

  close() {
    this.#die(new SandboxClosed("the sandbox is closed"));
  }

  async [Symbol.asyncDispose]() {
    this.close();
  }

  get closed() {
    return this.#closed !== null;
  }

  // A process with a control channel: descriptors 3 and 4, beside its output. See interpreter.mjs.
  #interpret(words, onStream) {
    const streams = Object.fromEntries([1, 2, 4].map((number) => [number, (data) => {
      running.send(["credit", running.id, number, data.length]);
      onStream(number, data);
    }]));
    const limits = { ...this.#limits, wall_seconds: 30 * 86_400, cpu_seconds: 30 * 86_400 }; // each run has its own
    const running = this.#start(argv(words), { stdin: toBytes(""), live: true, control: true, limits }, streams);
    return running;
  }

  #start(command, { cwd = null, env = {}, stdin = null, merge = false, live = false, limits, size = null, control = false, follows = false }, streams) {
    const id = this.#next++;
    const running = new Running(id, (message) => this.#send(message), streams);
    this.#check();
    this.#running.set(id, running);
    this.#tick();
    this.#send(["start", id, command, bytesMap(env), cwd === null ? null : toBytes(cwd), stdin, merge, live, limits, size, control, 0, follows]);
    return running;
  }

  #call(name, ...args) {
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#check();
      this.#calls.set(id, { resolve, reject });
      this.#tick();
      this.#send(["call", id, name, args]);
    });
  }

  #check() {
    if (this.#closed !== null) throw this.#closed;
  }

  #send(message) {
    if (this.#closed === null) this.#port.post({ frame: frame(message) });
  }

  #event(event) {
    try {
      this.#onEvent({ time: Date.now(), ...event });
    } catch (error) {
      console.error("belljar: onEvent failed", error);
    }
  }

  // While something is under way, have the worker look whether its time is used up.
  #tick() {
    if (this.#interrupt === null || this.#ticking !== null) return;
    this.#ticking = setInterval(() => {
      if (this.#running.size || this.#calls.size) Atomics.store(this.#interrupt, 0, 2);
      else {
        clearInterval(this.#ticking);
        this.#ticking = null;
      }
    }, TICK);
  }

  #take(message) {
    try {
      if (message.frame !== undefined) this.#handle(unframe(message.frame));
      else if (message.net !== undefined) this.#broker.receive(message.net);
    } catch (error) {
      this.#die(new SandboxDied(`the sandbox died: it broke the protocol (${error.message})`));
    }
  }

  #handle([kind, id, ...rest]) {
    const running = this.#running.get(id);
    switch (kind) {
      case "ready": return this.#settle("ready", (call) => call.resolve());
      case "output": return running?.streams[rest[0]]?.(rest[1]);
      case "started":
        if (running) running.pid = rest[0];
        return running?.begin();
      case "exited": {
        const [code, signal, limit, stdout, stderr, truncated] = rest;
        this.#running.delete(id);
        if (limit !== null) this.#event({ type: "limit", limit });
        running?.begin();
        return running?.end({ code, signal, limit, stdout, stderr, truncated });
      }
      case "reply": return this.#settle(id, (call) => call.resolve(rest[0]));
      case "failure": {
        const [errno, reason, path = null] = rest;
        const said = decoder.decode(reason);
        const error = errno ? new FileError(errno, said, path === null ? "" : decoder.decode(path)) : new SandboxError(said);
        if (running) {
          this.#running.delete(id);
          running.begin();
          return running.fail(error);
        }
        return this.#settle(id, (call) => call.reject(error));
      }
      case "ask": return this.#answer(id, ...rest);
      case "incident": {
        const [, trace, fatal = false] = rest;
        this.#event({ type: "incident", id: decoder.decode(id), trace: decoder.decode(trace) });
        if (fatal) this.#die(new SandboxDied(`the sandbox died: ${decoder.decode(trace).trim().split("\n").at(-1)}`));
        return undefined;
      }
      default: throw new RangeError(`no message ${kind}`);
    }
  }

  #settle(id, act) {
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    if (call) act(call);
  }

  // A tool: a function of the owner's, called as a command (strings in, text out) or by its file (JSON in and out).
  async #answer(id, target, operation, args) {
    const name = decoder.decode(target);
    const tool = this.#tools.get(name);
    let value = null;
    let errno = 0;
    try {
      if (operation === "tool" && tool) value = await runTool(name, tool, args[0].map((each) => decoder.decode(each)));
      else if (operation === "call" && tool) value = await callTool(tool, args[0]);
      else errno = 38;
    } catch {
      errno = 5;
    }
    this.#send(["answer", id, value, errno, new Uint8Array()]);
  }

  #die(error) {
    if (this.#closed !== null) return;
    this.#closed = error;
    clearInterval(this.#ticking);
    this.#port?.terminate();
    this.#broker?.close();
    this.js?.close(error);
    for (const running of this.#running.values()) {
      running.begin();
      running.fail(error);
    }
    for (const call of this.#calls.values()) call.reject(error);
    this.#running.clear();
    this.#calls.clear();
    if (error instanceof SandboxDied) this.#event({ type: "died", message: error.message });
  }
}

function finish(running, outputs) {
  running.ended.then((end) => {
    outputs[0].put(end.stdout);
    outputs[1]?.put(end.stderr);
    outputs.forEach((output) => output.close());
  }, (error) => outputs.forEach((output) => output.fail(error)));
}

function argv(command) {
  const parts = typeof command === "string" ? ["bash", "-c", command] : command;
  if (!Array.isArray(parts) || parts.length === 0) throw new TypeError("a command is a string, or an array of strings");
  return parts.map((part) => toBytes(part, "a word of a command"));
}

function bytesMap(object) {
  return new Map(Object.entries(object).map(([name, value]) => [toBytes(name), toBytes(value, name)]));
}

function checkLimits(given = {}) {
  return Object.fromEntries(Object.entries(given).map(([name, value]) => {
    if (!(name in LIMITS)) throw new TypeError(`limits: there is no ${name}; there are ${Object.keys(LIMITS).join(", ")}`);
    if (typeof value !== "number" || !(value > 0)) throw new RangeError(`limits: ${name} must be a positive number`);
    return [LIMITS[name], value];
  }));
}

function checkTools(tools) {
  return new Map(Object.entries(tools).map(([name, tool]) => {
    if (!/^[A-Za-z_][\w.-]*$/.test(name)) throw new TypeError(`tools: ${JSON.stringify(name)} is no name for a command`);
    if (typeof tool !== "function") throw new TypeError(`tools: ${name} must be a function`);
    return [name, tool];
  }));
}
