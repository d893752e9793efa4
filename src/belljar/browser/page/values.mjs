// Plain data between an owner and an interpreter (belljar/abi/values.py): JSON, with an object of one $ key for the rest.

const EXACT = 2 ** 53;

/** One line of JSON. TypeError for what is no plain data. */
export function dumps(value) {
  return ascii(JSON.stringify(tagged(value, 0)));
}

export function loads(text) {
  return untagged(JSON.parse(text));
}

const ascii = (text) => text.replace(/[\u007f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);

function tagged(value, depth) {
  if (depth > 200) throw new TypeError("values nested deeper than 200");
  if (value === null || value === undefined) return null;
  if (typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number") {
    if (Number.isNaN(value)) return { $float: "nan" };
    if (!Number.isFinite(value)) return { $float: value > 0 ? "inf" : "-inf" };
    return value;
  }
  if (typeof value === "bigint") return value <= EXACT && value >= -EXACT ? Number(value) : { $int: hex(value) };
  if (value instanceof Uint8Array) return { $bytes: btoa(Array.from(value, (byte) => String.fromCharCode(byte)).join("")) };
  if (value instanceof Date) return { $datetime: value.toISOString().replace("Z", "+00:00") };
  if (Array.isArray(value)) return value.map((each) => tagged(each, depth + 1));
  if (value instanceof Map) return { $dict: [...value].map((pair) => pair.map((each) => tagged(each, depth + 1))) };
  if (typeof value === "object" && [Object.prototype, null].includes(Object.getPrototypeOf(value))) {
    const entries = Object.entries(value).map(([key, each]) => [key, tagged(each, depth + 1)]);
    return entries.length === 1 && entries[0][0].startsWith("$") ? { $dict: entries } : Object.fromEntries(entries);
  }
  throw new TypeError(`a value of the kind ${value.constructor?.name ?? typeof value} is no plain data`);
}

const hex = (value) => (value < 0n ? `-0x${(-value).toString(16)}` : `0x${value.toString(16)}`);

function untagged(value) {
  if (Array.isArray(value)) return value.map(untagged);
  if (value === null || typeof value !== "object") return value;
  const entries = Object.entries(value);
  if (entries.length === 1 && entries[0][0].startsWith("$")) {
    const [kind, given] = entries[0];
    if (kind === "$int") return given.startsWith("-") ? -BigInt(given.slice(1)) : BigInt(given);
    if (kind === "$float") return { nan: NaN, inf: Infinity, "-inf": -Infinity }[given];
    if (kind === "$bytes") return Uint8Array.from(atob(given), (c) => c.charCodeAt(0));
    if (kind === "$datetime") return new Date(given);
    if (kind === "$dict") return new Map(given.map(([key, each]) => [untagged(key), untagged(each)]));
  }
  return Object.fromEntries(entries.map(([key, each]) => [key, untagged(each)]));
}
