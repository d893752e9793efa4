// Bounds a WebAssembly module's own memory: what a module declares can be limited from outside in no other way.

const TYPES = 1; // sections of a module
const TABLES = 4;
const MEMORIES = 5;
const FUNCTION = 0x60;
const NUMBERS = [0x7f, 0x7e, 0x7d, 0x7c, 0x7b]; // i32 i64 f32 f64 v128
const REFERENCES = [0x70, 0x6f]; // funcref externref
const HAS_MAXIMUM = 1;

/**
 * The module with no memory of more than so many pages. CompileError if its memory begins with more, or if it uses what takes
 * memory that can't be bounded: objects of a garbage collector, several memories.
 */
export function limitMemory(module, pages) {
  for (const { number, start, at, end } of sections(module)) {
    if (number === TYPES) checkTypes(module.subarray(at, end));
    if (number === TABLES) checkTables(module.subarray(at, end));
    if (number !== MEMORIES) continue;
    const body = limited(module.subarray(at, end), pages);
    const head = [MEMORIES, ...leb(body.length)];
    const made = new Uint8Array(start + head.length + body.length + module.length - end);
    made.set(module.subarray(0, start));
    made.set(head, start);
    made.set(body, start + head.length);
    made.set(module.subarray(end), start + head.length + body.length);
    return made;
  }
  return module;
}

function refuse(reason) {
  throw new WebAssembly.CompileError(reason);
}

// Functions of numbers and plain references only.
function checkTypes(body) {
  let [count, at] = number(body, 0);
  for (; count > 0; count--) {
    if (body[at++] !== FUNCTION) refuse("it uses a garbage collector, which is not there");
    for (let lists = 0; lists < 2; lists++) { // parameters, results
      let values;
      [values, at] = number(body, at);
      for (; values > 0; values--) {
        if (![...NUMBERS, ...REFERENCES].includes(body[at++])) refuse("it uses references of a kind that is not there");
      }
    }
  }
}

function checkTables(body) {
  let [count, at] = number(body, 0);
  for (; count > 0; count--) {
    if (!REFERENCES.includes(body[at++])) refuse("it uses a table of a kind that is not there");
    const flags = body[at++];
    for (let left = flags & HAS_MAXIMUM ? 2 : 1; left > 0; left--) [, at] = number(body, at);
  }
}

function limited(body, pages) {
  const [count, start] = number(body, 0);
  if (count !== 1) refuse("it wants more than one memory");
  const flags = body[start];
  if (flags & ~HAS_MAXIMUM) refuse("it wants a memory that is shared, or of 64 bits");
  const [least, at] = number(body, start + 1);
  const [most] = flags & HAS_MAXIMUM ? number(body, at) : [pages];
  if (least > pages) refuse(`it wants ${least} pages of memory, and may have ${pages}`);
  return Uint8Array.from([...leb(1), HAS_MAXIMUM, ...leb(least), ...leb(Math.max(least, Math.min(most, pages)))]);
}

function* sections(module) {
  for (let start = 8; start < module.length;) {
    const [length, at] = number(module, start + 1);
    yield { number: module[start], start, at, end: at + length };
    start = at + length;
  }
}

// A number as WebAssembly writes it (LEB128), and where it ends.
function number(data, at) {
  let value = 0;
  for (let shift = 0; shift < 35; shift += 7) {
    if (at >= data.length) break;
    const byte = data[at++];
    value += (byte & 127) * 2 ** shift;
    if (byte < 128) return [value, at];
  }
  throw new WebAssembly.CompileError("it is cut off");
}

function leb(value) {
  const made = [];
  for (; value > 127; value = Math.floor(value / 128)) made.push((value % 128) | 128);
  return [...made, value];
}
