// Which compiled modules guest Python may load: those that the page's owner hosts. The wall is the worker's policy; this is a
// second one, because a compiled module can call whatever the interpreter itself can.
import { digest } from "./engine_digests.mjs";

const FIRST_SECTION = 8; // after "\0asm" and a version
const CUSTOM = 0; // the kind of section that a module begins with if it is to be linked with the interpreter

/** From now on compiled Python modules load only if their SHA-256 is one of these. What Pyodide makes for itself still does. */
export function limitModules(digests) {
  const known = new Set(digests);
  WebAssembly.Module = new Proxy(WebAssembly.Module, {
    construct(target, [given]) {
      const bytes = new Uint8Array(given).slice(); // what is looked at is what is compiled
      if (bytes[FIRST_SECTION] === CUSTOM && !known.has(hex(digest("sha256", bytes)))) {
        throw new Error("it is none of the compiled modules that the page's owner hosts");
      }
      return new target(bytes);
    },
  });
  for (const name of ["compile", "compileStreaming", "instantiate", "instantiateStreaming"]) WebAssembly[name] = undefined;
}

const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
