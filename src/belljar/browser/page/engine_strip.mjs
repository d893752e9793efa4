// TypeScript as JavaScript, by OXC: the transformer that quickjs-rs brings as WebAssembly (belljar/engines/quickjs/strip_host.py).

const EBADF = 8;
const SOURCE_TS = 1 << 0;
const STRIP = 1 << 8;
const NAME = new TextEncoder().encode("run.ts");

/** A function from some TypeScript to its JavaScript; null if it is none. The transformer is started by its first use. */
export function makeStripper(bytes) {
  let exports = null;
  return (code) => {
    try {
      exports ??= start(bytes, () => exports.memory);
      return transform(exports, code);
    } catch (error) {
      if (!(error instanceof WebAssembly.RuntimeError || error instanceof RangeError)) throw error;
      exports = null;
      return null; // too deep for it: then it is no program
    }
  };
}

function start(bytes, memory) {
  return new WebAssembly.Instance(new WebAssembly.Module(bytes), {
    wasi_snapshot_preview1: {
      random_get(at, length) {
        crypto.getRandomValues(new Uint8Array(memory().buffer, at >>> 0, length));
        return 0;
      },
      environ_get: () => 0,
      environ_sizes_get(count, size) {
        const view = new DataView(memory().buffer);
        view.setUint32(count >>> 0, 0, true);
        view.setUint32(size >>> 0, 0, true);
        return 0;
      },
      fd_write: () => EBADF,
      proc_exit() {
        throw new RangeError("it ended itself");
      },
    },
  }).exports;
}

function transform(exports, code) {
  const data = new TextEncoder().encode(code);
  if (data.length === 0) return code;
  const put = (bytes) => {
    const at = exports.qjst_alloc(bytes.length) >>> 0;
    new Uint8Array(exports.memory.buffer, at, bytes.length).set(bytes);
    return at;
  };
  const [name, source] = [put(NAME), put(data)];
  const changed = exports.qjst_transform(name, NAME.length, source, data.length, SOURCE_TS | STRIP) === 0;
  const made = changed ? new TextDecoder().decode(new Uint8Array(exports.memory.buffer, exports.qjst_result_ptr() >>> 0, exports.qjst_result_len() >>> 0)) : null;
  exports.qjst_result_free();
  exports.qjst_free(name, NAME.length);
  exports.qjst_free(source, data.length);
  return made;
}
