// Guest JavaScript: QuickJS with our JavaScript and Node's library in it (belljar/engines/quickjs). One engine is one program of the
// sandbox (`node`), or one interpreter of the owner's (`sandbox.js`), which has no files and speaks by messages.
import { Client } from "./calls.mjs";
import { digest } from "./engine_digests.mjs";
import { Handle, OUT_OF_MEMORY, QuickJS, Thrown, Trapped } from "./engine_quickjs.mjs";
import { makeStripper } from "./engine_strip.mjs";
import { decodeText, encodeText, findBytes, parseUrl, updateUrl } from "./engine_text.mjs";

const ENGINE = 0; // why a run is ended, as engines/js/addon/guest.h numbers it
const CPU = 1;
const WALL = 2;
const MEMORY = 3;
const OUTPUT = 6; // of this file
const REASONS = 8;
const HEAD = 5; // bytes of a frame of engines/wire/js.py before its message
const PRINTED = 32 << 10; // bytes
const NOT_FOUND = 127; // a shell's exit code for a command that is not there
const STACK = '{"op":"limit","limit":"stack"}';
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Unwinds the engine: the program has ended. */
class Exit extends Error {}

export class Guest {
  #engine;
  #dispatcher;
  #sources;
  #strip;
  #last = Array.from({ length: REASONS }, () => new Uint8Array());
  #stopped = false;
  #why = ENGINE;
  #told = false;
  #memoryMax = 2 ** 32;
  #deadlines = { cpu: Infinity, wall: Infinity };
  #outputLeft = Infinity;
  #idleMs = 0; // spent waiting, which is not counted
  #printed = { stream: 0, parts: [], size: 0 };
  client = null; // of a program
  post = null; // of an interpreter: ({message} | {output}) => void

  /**
   * @param engine      the compiled module of QuickJS
   * @param transformer of the module that makes JavaScript of TypeScript, compiled when it is used
   * @param sources     {name: code}: Node's library and ours
   * @param image       of a guest at rest, or null: then it takes a second
   */
  constructor(engine, transformer, sources, image) {
    this.#sources = new Map(Object.entries(sources));
    this.#strip = makeStripper(transformer);
    this.#engine = new QuickJS(engine, this.#natives(), () => this.#interrupted(), image);
    if (image !== null) {
      this.#last = image.last;
      this.#dispatcher = image.dispatcher;
      return;
    }
    const values = this.#engine;
    const made = values.call(values.evaluate(sources["belljar/prelude"]), values.functions());
    this.#dispatcher = values.get(made, "dispatch");
    values.call(values.evaluate(sources["belljar/boot"]), values.get(made, "native"));
    this.#runJobs();
    values.listen();
    this.#hook("warmUp");
    this.#turnUntilIdle();
    values.collect();
  }

  image() {
    return { ...this.#engine.image(), dispatcher: this.#dispatcher, last: this.#last };
  }

  /** Run a program of the sandbox, which does all its waiting by itself, to its end. */
  runProgram(client) {
    this.client = client;
    this.limitMemory(512 << 20); // until START says
    this.#hook("reseed");
    try {
      this.#hook("program");
      this.#turnUntilIdle();
    } catch (caught) {
      const error = this.#engine.reason(caught);
      if (error instanceof Exit) return;
      const said = error instanceof Trapped && !error.isStack ? `the engine gave up: ${error.message}` : "RangeError: Maximum call stack size exceeded";
      if (!(error instanceof Trapped)) throw error;
      client.post("write", 2, encoder.encode(`Uncaught ${said}\n`));
      client.post("exit", 7, 0, client.cpuNanoseconds);
      return;
    }
    if (this.#stopped) client.send(this.#last[this.#why]);
  }

  /** Hand a message to our JavaScript and run whatever it starts to its end. False: this engine can't be used any more. */
  async handle(text, next) {
    const message = JSON.parse(text);
    if (message.op === "run") {
      this.limitMemory(message.limits.memory_mb * 2 ** 20);
      this.#outputLeft = message.limits.output_bytes;
    }
    this.#stopped = this.#told = false;
    this.#why = ENGINE;
    this.#engine.forgetRejections();
    try {
      this.#hook("message", text);
      await this.#turnAndWait(next);
    } catch (caught) {
      const error = this.#engine.reason(caught);
      if (!(error instanceof Trapped)) throw error;
      this.#flush();
      this.post({ message: error.isStack ? STACK : decoder.decode(this.#last[ENGINE].subarray(HEAD)) });
      return false;
    } finally {
      this.#deadlines = { cpu: Infinity, wall: Infinity };
    }
    this.#flush();
    if (this.#told && !this.#stopped) return true;
    this.post({ message: decoder.decode(this.#last[this.#why].subarray(HEAD)) });
    return this.#why !== MEMORY;
  }

  reseed() {
    this.#hook("reseed");
  }

  // Limits.

  limitMemory(bytes) {
    this.#memoryMax = this.#engine.memoryBytes + bytes;
  }

  #allow(cpuMs, wallMs) {
    const now = performance.now();
    this.#idleMs = 0;
    this.#deadlines = { cpu: cpuMs > 0 ? now + cpuMs : Infinity, wall: wallMs > 0 ? now + wallMs : Infinity };
  }

  #interrupted() {
    this.#checkLimits();
    return this.#stopped;
  }

  #checkLimits() {
    if (this.#stopped || this.#engine === undefined) return;
    const now = performance.now();
    const waited = this.client === null ? this.#idleMs : this.client.waitedMs;
    if (this.#engine.memoryBytes > this.#memoryMax) this.#stop(MEMORY);
    else if (now > this.#deadlines.wall) this.#stop(WALL);
    else if (now - waited > this.#deadlines.cpu) this.#stop(CPU);
  }

  #stop(why) {
    if (!this.#stopped) this.#why = why % REASONS;
    this.#stopped = true;
  }

  // What our JavaScript may ask for.

  #natives() {
    const engine = () => this.#engine;
    return {
      send: ["s", (said) => this.#send(said)],
      print: ["ns", (stream, said) => this.#print(stream, encoder.encode(said))],
      limits: ["nnn", (cpuMs, wallMs, memoryMb) => {
        this.#allow(cpuMs, wallMs);
        if (this.client !== null) this.limitMemory(memoryMb * 2 ** 20);
      }],
      stop: ["n", (why) => {
        this.#stop(why);
        throw new Thrown("the run is over");
      }],
      setFinalMessage: ["nb", (why, data) => { this.#last[why % REASONS] = data; }],
      sendBytes: ["b", (data) => this.#sendBytes(data)],
      receiveBody: ["", () => this.#kernel.receive()],
      readable: ["n", (milliseconds) => this.#kernel.readable(milliseconds < 0 ? Infinity : milliseconds)],
      exit: ["n", () => { throw new Exit("the program has ended"); }],
      now: ["", () => performance.now()],
      cpuTime: ["", () => (this.client === null ? performance.now() * 1e6 : this.client.cpuNanoseconds)],
      random: ["n", (count) => randomBytes(count)],
      digest: ["sb", digest],
      source: ["s", (name) => this.#sources.get(name)],
      script: ["s", (code) => engine().runScript(code)],
      module: ["ss", (code, name) => engine().startModule(code, name)],
      strip: ["s", (code) => this.#strip(code)],
      encode: ["bn", encodeText],
      decode: ["sn", decodeText],
      indexOf: ["bbnnn", (data, needle, at, forward, unit) => findBytes(data, needle, at, forward !== 0, unit)],
      parseUrl: ["s", (text) => parseUrl(text)],
      parseUrlWithBase: ["ss", parseUrl],
      updateUrl: ["sns", updateUrl],
      promise: ["h", (handle) => {
        const found = engine().promise(handle);
        if (found !== null) engine().free(found[1]);
        return found === null ? null : found[0];
      }],
      promiseResult: ["h", (handle) => {
        const found = engine().promise(handle);
        return found === null ? null : new Handle(found[1]);
      }],
    };
  }

  get #kernel() {
    if (this.client === null) throw new Thrown("there is no kernel");
    return this.client;
  }

  #send(said) {
    this.#checkLimits();
    if (this.#stopped) return; // the last message says it
    if (this.post === null) throw new Thrown("there is nobody to talk to");
    if (said.startsWith('{"op":"done"')) this.#told = true;
    this.#flush();
    this.post({ message: said });
  }

  // To the kernel. Ends a program that caught its out-of-memory error and went on.
  #sendBytes(data) {
    this.#checkLimits();
    if (this.#stopped) {
      this.#kernel.send(this.#last[this.#why]);
      throw new Exit("a limit");
    }
    this.#kernel.send(data);
  }

  // Kept until there is much of it, something else is sent, or the interpreter waits.
  #print(stream, data) {
    if (stream !== this.#printed.stream) this.#flush();
    this.#printed.stream = stream;
    this.#printed.parts.push(data);
    this.#printed.size += data.length;
    this.#outputLeft -= data.length;
    if (this.#outputLeft < 0) {
      this.#last[OUTPUT] = encoder.encode(`${" ".repeat(HEAD)}{"op":"limit","limit":"output_bytes"}`);
      this.#stop(OUTPUT);
      throw new Thrown("the run is over");
    }
    if (this.#printed.size > PRINTED) this.#flush();
  }

  #flush() {
    const { stream, parts, size } = this.#printed;
    if (size === 0) return;
    const whole = new Uint8Array(size);
    let at = 0;
    for (const part of parts) {
      whole.set(part, at);
      at += part.length;
    }
    this.#printed = { stream, parts: [], size: 0 };
    this.post({ output: [stream, whole] });
  }

  // The loop.

  // Call one of our JavaScript's hooks; a handle is freed.
  #hook(name, value = null, fresh = null) {
    const values = this.#engine;
    const handles = [name, value, fresh].map((each) => values.give(each));
    try {
      const made = values.call(this.#dispatcher, ...handles);
      const number = values.number(made);
      values.free(made);
      return number;
    } catch (error) {
      if (!(error instanceof Thrown)) throw error;
      if (error.message.includes(OUT_OF_MEMORY)) this.#stop(MEMORY);
      return -1;
    } finally {
      handles.forEach((handle) => values.free(handle));
    }
  }

  #runJobs() {
    while (!this.#stopped && this.#engine.runJob());
  }

  // What is due; milliseconds until something else is: negative when all is over, infinity when only an answer can help.
  #turn() {
    this.#runJobs();
    const { rejections } = this.#engine;
    while (rejections.length && !this.#stopped) {
      const [promise, fresh] = rejections.shift();
      this.#hook("rejection", new Handle(promise), fresh);
    }
    const wait = this.#stopped ? -1 : this.#hook("turn");
    return this.#stopped ? -1 : wait;
  }

  #turnUntilIdle() {
    while (this.#turn() >= 0);
  }

  async #turnAndWait(next) {
    for (let wait = this.#turn(); wait >= 0; wait = this.#turn()) {
      if (wait === 0) continue;
      this.#flush();
      const began = performance.now();
      const message = await next(Math.min(wait, Math.max(this.#deadlines.wall - began, 0) + 1));
      this.#idleMs += performance.now() - began;
      this.#checkLimits();
      if (message !== null) this.#hook("message", message);
    }
  }
}

function randomBytes(count) {
  const bytes = new Uint8Array(count);
  for (let at = 0; at < count; at += 65536) crypto.getRandomValues(bytes.subarray(at, at + 65536));
  return bytes;
}

/**
 * @param load    (name) => Promise<Uint8Array>: one of this directory's files
 * @param post    (Uint8Array | {ready} | {message} | {output}) => void
 * @param program a promise of {ring}, memory shared with the kernel; or of {messages}, what an interpreter's owner says
 * @param end     () => void: ends this worker
 */
export async function serveJs({ load, post, program, end }) {
  let guest = null;
  let failure = null;
  try {
    guest = await loadGuest(load);
  } catch (error) {
    failure = `JavaScript could not be loaded: ${error.message}`;
  }
  post({ ready: true });
  const { ring, messages } = await program;
  if (ring !== undefined) {
    const client = new Client(post, ring);
    if (guest !== null) guest.runProgram(client);
    else {
      client.post("write", 2, encoder.encode(`node: ${failure}\n`));
      client.post("exit", NOT_FOUND, 0, 0);
    }
  } else if (guest === null) post({ failure });
  else {
    guest.post = post;
    guest.reseed();
    for (;;) if (!(await guest.handle(await messages(Infinity), messages))) break;
  }
  end();
}

/** A guest from the files that `belljar browser build` made. */
export async function loadGuest(load) {
  const [engine, transformer, sources, memory, rest] = await Promise.all(
    ["node/quickjs.wasm", "node/typescript.wasm", "node/library.json", "node/memory.bin", "node/memory.json"].map(load),
  );
  const text = (bytes) => JSON.parse(decoder.decode(bytes));
  const { last, ...image } = text(rest);
  return new Guest(await WebAssembly.compile(engine), transformer, text(sources), { ...image, memory, last: last.map((each) => Uint8Array.from(each)) });
}
