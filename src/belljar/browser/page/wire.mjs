// The frames of belljar/abi/wire.py: a length of four bytes, then one message, an array that begins with its kind.
import { decode, encode } from "./msgpack.mjs";

const text = new TextEncoder();

/** Guest text is bytes on the wire. */
export function toBytes(value, what = "data") {
  if (typeof value === "string") return text.encode(value);
  if (value instanceof Uint8Array) return value;
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  throw new TypeError(`${what} must be a string or a Uint8Array, not ${value === null ? "null" : typeof value}`);
}

export function frame(message) {
  const body = encode(message);
  const framed = new Uint8Array(4 + body.length);
  new DataView(framed.buffer).setUint32(0, body.length, true);
  framed.set(body, 4);
  return framed;
}

/** The message of a frame, which comes whole: each is one message of the worker's port. */
export function unframe(framed) {
  if (framed.length < 5 || new DataView(framed.buffer, framed.byteOffset).getUint32(0, true) !== framed.length - 4) {
    throw new RangeError("a frame of another length than it says");
  }
  const message = decode(framed.subarray(4));
  if (!Array.isArray(message) || typeof message[0] !== "string") throw new RangeError("a frame that is no message");
  return message;
}
