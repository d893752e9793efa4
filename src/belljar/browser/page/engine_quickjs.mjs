// QuickJS in WebAssembly, and its values by handles (the module is quickjs-rs's; belljar/engines/quickjs/values_host.py is the same for wasmtime).
//
// A handle is a number that keeps a value alive until it is freed. What JavaScript passes to a host function is freed by the
// module itself; what a host function gives back is the module's from then on.

const OK = 0;
const JS_ERROR = 1;
const FAILED = 0xffffffff; // what a host function that throws returns
const EBADF = 8;
const TEXT_MAX = 64 << 20;
const STACK_LEAST = 64 << 10;
const FUNCTIONS_MAX = 4096;
const OBJECT = 0xffffffff;
export const OUT_OF_MEMORY = "out of memory"; // the engine's own words
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** An exception thrown by guest JavaScript, or to be thrown there. */
export class Thrown extends Error {}

/** Guest JavaScript threw, and the exception is still pending in the module. */
class Pending extends Error {}

/** The engine was ended by the machine, not by itself. */
export class Trapped extends Error {
  constructor(message, stack) {
    super(message);
    this.isStack = stack;
  }
}

/** A handle to give back as it is. */
export class Handle {
  constructor(number) {
    this.number = number;
  }
}

// A module that imports one function and exports it: a table takes no function of JavaScript, but takes this one.
// (module (import "e" "f" (func (param i32 i64 i64 i32 i32))) (export "f" (func 0)))
const ADAPTER = Uint8Array.of(
  0, 97, 115, 109, 1, 0, 0, 0, 1, 9, 1, 96, 5, 127, 126, 126, 127, 127, 0, 2, 7, 1, 1, 101, 1, 102, 0, 0, 7, 5, 1, 1, 102, 0, 0,
);

export class QuickJS {
  #exports;
  #bytes = new Uint8Array();
  #out; // where the module writes what it gives; read at once
  #empty; // handles of "" and of no bytes: the module takes nothing for a mistake
  #natives;
  rejections = []; // [handle of a promise, whether it is unhandled], since the last look

  /**
   * @param module    the compiled engine
   * @param natives   {name: [letters, function]}: host functions, with their parameters: n a number, s a text, b bytes, h a handle
   * @param interrupt () => boolean: whether the engine has to stop; asked every few thousand steps
   * @param image     what `image()` gave of another one, to go on from there
   */
  constructor(module, natives, interrupt, image = null) {
    this.#natives = new Map(Object.entries(natives));
    const none = () => EBADF;
    this.#exports = new WebAssembly.Instance(module, {
      env: {
        host_call: (...given) => this.#hostCall(...given.map(unsigned)),
        host_interrupt: () => Number(interrupt()),
        host_module_normalize: (_base, _size, name, length, lengthAt) => this.#normalize(name >>> 0, length, lengthAt >>> 0),
        host_module_load: () => 0,
      },
      wasi_snapshot_preview1: {
        random_get: (at, length) => this.#random(at >>> 0, length >>> 0),
        environ_get: () => 0,
        environ_sizes_get: (count, size) => this.#words(count >>> 0, 0, size >>> 0, 0),
        clock_time_get: (which, _precision, at) => this.#clock(which, at >>> 0),
        fd_close: none, fd_fdstat_get: none, fd_seek: none, fd_write: none,
        proc_exit: () => { throw new Trapped("the engine ended itself", false); },
      },
    }).exports;
    const hear = (_context, promise, _reason, handled) => this.#hear(BigInt.asUintN(64, promise), handled !== 0);
    const adapted = new WebAssembly.Instance(new WebAssembly.Module(ADAPTER), { e: { f: hear } });
    this.listener = this.#exports.table.grow(1, adapted.exports.f);
    if (image === null) {
      this.#exports._initialize?.();
      this.#out = this.#exports.qjs_alloc(32) >>> 0;
      this.#empty = { text: this.evaluate("''"), bytes: this.evaluate("new Uint8Array(0)") };
    } else {
      const { memory } = this.#exports;
      if (image.memory.length > memory.buffer.byteLength) memory.grow((image.memory.length - memory.buffer.byteLength) >> 16);
      new Uint8Array(memory.buffer).set(image.memory);
      ({ out: this.#out, empty: this.#empty } = image);
    }
  }

  /** All of it at rest, for another instance of the same module. */
  image() {
    return { memory: this.#memory.slice(), out: this.#out, empty: this.#empty };
  }

  get memoryBytes() {
    return this.#exports.memory.buffer.byteLength;
  }

  // The memory, which moves when it grows.
  get #memory() {
    const { buffer } = this.#exports.memory;
    if (this.#bytes.buffer !== buffer) this.#bytes = new Uint8Array(buffer);
    return this.#bytes;
  }

  get #view() {
    return new DataView(this.#exports.memory.buffer);
  }

  // Host functions.

  #hostCall(name, nameLength, _self, count, args) {
    const [letters, native] = this.#natives.get(decoder.decode(this.#read(name, nameLength)));
    const handles = Array.from({ length: count }, (_, i) => this.#view.getUint32(args + 4 * i, true));
    try {
      if (count < letters.length) throw new Thrown("an argument is missing");
      return this.give(native(...[...letters].map((letter, i) => this.take(letter, handles[i]))));
    } catch (error) {
      if (error instanceof Pending) return FAILED;
      if (error instanceof Thrown) return this.#throw(error.message);
      throw error;
    }
  }

  // A module's name: one of those that were evaluated, by the name that was given to it then.
  #normalize(name, length, lengthAt) {
    const wanted = this.#read(name, length).slice();
    if (!wanted.includes(35)) return 0; // "#"
    const at = this.#put(wanted);
    this.#view.setUint32(lengthAt, wanted.length, true);
    return at;
  }

  #random(at, length) {
    const bytes = this.#read(at, length);
    for (let done = 0; done < length; done += 65536) crypto.getRandomValues(bytes.subarray(done, done + 65536));
    return 0;
  }

  #words(...pairs) {
    for (let i = 0; i < pairs.length; i += 2) this.#view.setUint32(pairs[i], pairs[i + 1], true);
    return 0;
  }

  #clock(which, at) {
    const now = which === 0 ? Date.now() : performance.now();
    this.#view.setBigUint64(at, BigInt(Math.floor(now)) * 1_000_000n, true);
    return 0;
  }

  // The engine tells of a promise, not by a handle but as it is: the first of a handle is the value itself.
  #hear(promise, handled) {
    if (Number(promise >> 32n) !== OBJECT) return;
    const made = this.#exports.new_undefined() >>> 0;
    const object = Number(promise & 0xffffffffn);
    this.#view.setUint32(object, this.#view.getUint32(object, true) + 1, true); // its count of references
    this.#view.setBigUint64(made, promise, true);
    this.rejections.push([made, !handled]);
  }

  /** Have the engine tell of rejected promises. Its record of who is told is found by what is beside it, then proved. */
  listen() {
    const places = trackers(new Uint32Array(this.#exports.memory.buffer));
    if (places.length !== 1) throw new Error(`the engine's record is not where it should be: ${places.length} places look like it`);
    this.#view.setUint32(places[0], this.listener, true);
    this.free(this.evaluate("Promise.reject(0); Promise.reject(1).catch(() => {}); 0"));
    const told = this.rejections.map(([, fresh]) => fresh);
    this.forgetRejections();
    if (told.join() !== "true,true,false") throw new Error(`the engine tells of promises what it should not: ${told}`);
  }

  forgetRejections() {
    this.rejections.splice(0).forEach(([handle]) => this.free(handle));
  }

  // Memory.

  #read(at, length) {
    if (at + length > this.memoryBytes) throw new Thrown("an address outside the memory");
    return this.#memory.subarray(at, at + length);
  }

  #put(data) {
    if (data.length > TEXT_MAX) throw new Thrown(`${data.length} bytes are too many to hand over at once`);
    const at = this.#exports.qjs_alloc(data.length) >>> 0;
    if (at === 0) throw new Thrown(OUT_OF_MEMORY);
    this.#read(at, data.length).set(data);
    return at;
  }

  // Do something with bytes that are in the module's memory meanwhile.
  #with(data, act) {
    const at = this.#put(data);
    try {
      return act(at, data.length);
    } finally {
      this.#exports.qjs_free(at, data.length);
    }
  }

  get #given() {
    return this.#view.getUint32(this.#out, true);
  }

  #last() {
    const data = this.#read(this.#exports.qjs_last_ptr() >>> 0, this.#exports.qjs_last_len() >>> 0).slice();
    this.#exports.qjs_result_free();
    return data;
  }

  // From guest JavaScript.

  take(letter, handle) {
    if (letter === "h") return handle;
    if (letter === "n") return this.number(handle);
    if (letter === "s") return this.text(handle);
    if (this.#exports.get_typed_array_buffer(handle, this.#out, this.#out + 4, this.#out + 8) !== OK) throw new Thrown("a Uint8Array was expected");
    return this.#last();
  }

  text(handle) {
    if (this.#exports.get_string(handle) !== OK) throw new Thrown("a text was expected");
    return decoder.decode(this.#last());
  }

  number(handle) {
    if (this.#exports.get_number(handle, this.#out) !== OK) throw new Thrown("a number was expected");
    return this.#view.getFloat64(this.#out, true);
  }

  // To guest JavaScript.

  /** A handle for undefined or null (both undefined), a truth, a number, a text or bytes. */
  give(value) {
    if (value === undefined || value === null) return this.#exports.new_undefined() >>> 0;
    if (typeof value === "boolean") return this.#exports.new_bool(value ? 1 : 0) >>> 0;
    if (typeof value === "number") return this.#exports.new_number(bits(value)) >>> 0;
    if (value instanceof Handle) return value.number;
    const isText = typeof value === "string";
    const data = isText ? encoder.encode(value) : value;
    if (data.length === 0) return this.#exports.dup_handle(isText ? this.#empty.text : this.#empty.bytes) >>> 0;
    const made = this.#with(data, (at, length) => {
      if (isText) return this.#exports.new_string(at, length) >>> 0;
      return this.#exports.new_uint8array(at, length, this.#out) === OK ? this.#given : 0;
    });
    if (made === 0) throw new Thrown(OUT_OF_MEMORY);
    return made;
  }

  #throw(message) {
    const data = encoder.encode(message || "?");
    const at = this.#exports.qjs_alloc(data.length) >>> 0;
    if (at !== 0) {
      this.#read(at, data.length).set(data);
      if (this.#exports.new_error(at, data.length, this.#out) === OK) {
        const made = this.#given;
        this.#exports.throw(made);
        this.free(made);
      }
      this.#exports.qjs_free(at, data.length);
    }
    return FAILED;
  }

  free(handle) {
    this.#exports.free_value(handle);
  }

  // Code.

  /** An object of all the host functions. */
  functions() {
    const made = this.#exports.new_object() >>> 0;
    for (const name of this.#natives.keys()) {
      this.#with(encoder.encode(name), (at, length) => {
        const native = this.#exports.new_function(at, length) >>> 0;
        this.#exports.set_prop(made, at, length, native);
        this.free(native);
      });
    }
    return made;
  }

  get(object, name) {
    return this.#with(encoder.encode(name), (at, length) => {
      this.#check(this.#exports.get_prop(object, at, length, this.#out));
      return this.#given;
    });
  }

  /** Run a script; gives a handle of its value. Thrown. */
  evaluate(code) {
    return this.#with(encoder.encode(code), (at, length) => {
      this.#check(this.#exports.eval_code(at, length, this.#out));
      return this.#given;
    });
  }

  /** The same for a host function: what it throws is pending. */
  runScript(code) {
    return this.#with(encoder.encode(code), (at, length) => {
      if (this.#exports.eval_code(at, length, this.#out) !== OK) throw new Pending();
      return new Handle(this.#given);
    });
  }

  /** Compile and start a module, for a host function: what it throws is pending. */
  startModule(code, name) {
    this.#with(encoder.encode(code || "\n"), (at, length) => this.#with(encoder.encode(name), (named, size) => {
      if (this.#exports.eval_module_async(at, length, named, size, this.#out) !== OK) throw new Pending();
      this.free(this.#given);
    }));
  }

  /** Call a function with handles, which stay the caller's. Thrown, Trapped. */
  call(called, ...handles) {
    const self = this.#exports.new_undefined() >>> 0;
    try {
      return this.#with(new Uint8Array(Uint32Array.from(handles).buffer), (at) => {
        this.#check(this.#exports.call_function(called, self, at, handles.length, this.#out));
        return this.#given;
      });
    } finally {
      this.free(self);
    }
  }

  /** [state (0 pending, 1 fulfilled, 2 rejected), handle of its value], or null if it is no promise. */
  promise(handle) {
    if (this.#exports.promise_state(handle, this.#out) !== OK) return null;
    const state = this.#given;
    if (state === 0) return [0, this.#exports.new_undefined() >>> 0];
    this.#exports.promise_result(handle, this.#out);
    return [state, this.#given];
  }

  /** One of the jobs that wait; false if there was none. */
  runJob() {
    return this.#exports.execute_pending_jobs() !== 0;
  }

  collect() {
    this.#exports.run_gc();
  }

  #check(status) {
    if (status === OK) return;
    if (status !== JS_ERROR) throw new Thrown(`the engine answers with status ${status}`);
    if (this.#exports.last_exception(this.#out) !== OK) throw new Thrown("interrupted");
    const handle = this.#given;
    const [name, message, stack] = ["name", "message", "stack"].map((each) => this.#word(handle, each));
    this.free(handle);
    throw new Thrown(`${name}: ${message}\n${stack}`);
  }

  #word(handle, name) {
    return this.#with(encoder.encode(name), (at, length) => {
      if (this.#exports.get_prop(handle, at, length, this.#out) !== OK) return "?";
      const made = this.#given;
      try {
        return this.text(made);
      } catch (error) {
        if (!(error instanceof Thrown)) throw error;
        return "?";
      } finally {
        this.free(made);
      }
    });
  }

  /** What ended a call from outside: Trapped for the machine's own reasons, the error itself for a host function's. */
  reason(error) {
    if (error instanceof RangeError) return new Trapped(error.message, true); // V8's stack
    if (!(error instanceof WebAssembly.RuntimeError)) return error;
    // The module has a second stack at the bottom of its memory: who falls off that reads from nowhere.
    const left = this.#exports.__stack_pointer.value;
    return new Trapped(error.message, left < STACK_LEAST);
  }
}

const unsigned = (value) => value >>> 0;
const bits = (number) => new BigInt64Array(Float64Array.of(number).buffer)[0];

// Where in memory the engine may keep who is told of rejections: with a word of that one's own, right before the list of jobs,
// which is empty and so points to itself; and a few words after the function that says whether to stop, which is set.
function trackers(words) {
  const found = [];
  for (let i = 8; i < words.length - 1; i++) {
    const here = 4 * i;
    if (words[i] !== here || words[i + 1] !== here) continue;
    if (words.subarray(i - 5, i).some((word) => word !== 0)) continue;
    if (words[i - 7] > 0 && words[i - 7] < FUNCTIONS_MAX && words[i - 6] !== 0) found.push(here - 8);
  }
  return found;
}
