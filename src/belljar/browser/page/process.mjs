// A command under way: its streams as web streams, its end, signals to it.
import { toBytes } from "./wire.mjs";

const SIGNALS = { HUP: 1, INT: 2, QUIT: 3, KILL: 9, USR1: 10, USR2: 12, PIPE: 13, ALRM: 14, TERM: 15, CONT: 18, STOP: 19, TSTP: 20, WINCH: 28 };
const KEPT = 1 << 20; // bytes that wait here for a reader, before the command waits

export function signalNumber(signal) {
  const number = typeof signal === "number" ? signal : SIGNALS[String(signal).replace(/^SIG/, "")];
  if (!Number.isInteger(number) || number < 1 || number > 64) throw new RangeError(`no signal ${signal}`);
  return number;
}

/** What came of a Start: output in, its end. `send` takes messages for the worker. */
export class Running {
  constructor(id, send, streams) {
    this.id = id;
    this.send = send;
    this.streams = streams; // by number: (Uint8Array) => void, or absent
    this.ended = new Promise((resolve, reject) => {
      this.end = resolve;
      this.fail = reject;
    });
    this.ended.catch(() => {}); // whoever waits hears of it
    this.started = new Promise((resolve) => { this.begin = resolve; });
  }
}

/** A ReadableStream that gives credit as it is read. */
export function outputStream(grant) {
  let owed = 0;
  let controller;
  const stream = new ReadableStream({
    start(given) { controller = given; },
    pull() {
      if (owed) {
        grant(owed);
        owed = 0;
      }
    },
    cancel() {
      controller = null;
    },
  }, new ByteLengthQueuingStrategy({ highWaterMark: KEPT }));
  return {
    stream,
    put(data) {
      if (data.length === 0) return;
      if (controller === null) return grant(data.length); // nobody reads: it is dropped
      owed += data.length;
      controller.enqueue(data);
    },
    close() { controller?.close(); },
    fail(error) { controller?.error(error); },
  };
}

/** A command that was spawned. */
export class Process {
  #running;

  constructor(running, call, outputs) {
    this.#running = running;
    [this.stdout, this.stderr] = outputs.map((output) => output.stream);
    this.stdin = new WritableStream({
      write: async (data) => {
        const taken = await call("input", running.id, toBytes(data));
        if (!taken) throw new Error("nobody reads this input any more");
      },
      close: () => running.send(["input", running.id, new Uint8Array()]),
      abort: () => running.send(["input", running.id, new Uint8Array()]),
    });
    this.exited = false;
    running.ended.then(() => { this.exited = true; }, () => { this.exited = true; });
  }

  get pid() {
    return this.#running.pid;
  }

  /** The exit code, when it has ended. */
  async wait() {
    return exitCode(await this.#running.ended);
  }

  kill(signal = "TERM") {
    this.#running.send(["signal", this.#running.id, signalNumber(signal), false]);
  }
}

/** A command on a terminal. */
export class Terminal {
  #running;

  constructor(running, output) {
    this.#running = running;
    this.output = output.stream;
  }

  get pid() {
    return this.#running.pid;
  }

  write(data) {
    this.#running.send(["input", this.#running.id, toBytes(data), 0]);
  }

  resize(rows, cols) {
    this.#running.send(["resize", this.#running.id, rows, cols]);
  }

  async wait() {
    return exitCode(await this.#running.ended);
  }

  kill(signal = "HUP") {
    this.#running.send(["signal", this.#running.id, signalNumber(signal), true]);
  }
}

export const exitCode = ({ code, signal }) => (signal ? 128 + signal : code);
