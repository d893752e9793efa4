// A session's files in a link: what somebody made in /workspace, compressed, in the part of an address that no server
// sees. Whoever opens a link does not trust it: `parseFragment` checks everything, and runs nothing.
import { concat } from "./files.mjs";
import { decode, encode } from "./msgpack.mjs";

const MARK = "#files=";
export const LINK_MAX = 64 << 10; // characters: longer ones are cut on their way
const UNPACKED_MAX = 4 << 20;
const FILES_MAX = 1000;
const PATH_MAX = 1024;
const TOP = "/workspace"; // not the home directory: a shell runs files of it when it starts

/** What a link could hold of a sandbox: [[path, mode, bytes], ...], sorted. */
export async function collect(files) {
  const found = [];
  const visit = async (path) => {
    for (const entry of await files.list(path)) {
      const inside = `${path}/${entry.name}`;
      if (entry.kind === "directory") await visit(inside);
      else if (entry.kind === "file") found.push([inside, entry.mode & 0o777, await files.readBytes(inside)]);
      if (found.length > FILES_MAX) throw new RangeError(`more than ${FILES_MAX} files are too many for a link: save the session as a file`);
    }
  };
  await visit(TOP);
  return found;
}

/** The end of a link: a fragment. RangeError if there is too much. */
export async function makeFragment(found) {
  const packed = await pass(encode(found), new CompressionStream("deflate-raw"), Infinity);
  let text = "";
  for (const byte of packed) text += String.fromCharCode(byte);
  const fragment = `${MARK}${btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "")}`;
  if (fragment.length > LINK_MAX) {
    throw new RangeError(`${Math.ceil(fragment.length / 1024)} kB are too much for a link (${LINK_MAX >> 10} kB): save the session as a file`);
  }
  return fragment;
}

/** The files of a link, or null if it has none. Error if it is damaged, or asks for what a link may not have. */
export async function parseFragment(fragment) {
  if (!fragment.startsWith(MARK)) return null;
  if (fragment.length > LINK_MAX) throw new RangeError("the link is too long");
  let files;
  try {
    const text = atob(fragment.slice(MARK.length).replaceAll("-", "+").replaceAll("_", "/"));
    const packed = Uint8Array.from(text, (c) => c.charCodeAt(0));
    files = decode(await pass(packed, new DecompressionStream("deflate-raw"), UNPACKED_MAX));
  } catch (error) {
    throw new Error(`the link is damaged (${error.message})`);
  }
  if (!Array.isArray(files) || files.length > FILES_MAX || !files.every(isFile)) throw new Error("the link asks for what a link may not have");
  return files;
}

function isFile(file) {
  if (!Array.isArray(file) || file.length !== 3) return false;
  const [path, mode, data] = file;
  return typeof path === "string" && path.length <= PATH_MAX && isInside(path) && Number.isInteger(mode) && mode >= 0 && mode <= 0o777 && data instanceof Uint8Array;
}

function isInside(path) {
  if (/[\x00-\x1f\x7f\u202a-\u202e\u2066-\u2069]/.test(path)) return false; // what would make a list of names lie
  const names = path.split("/").slice(1);
  return path.startsWith(`${TOP}/`) && names.every((name) => name !== "" && name !== "." && name !== "..");
}

async function pass(bytes, stream, most) {
  const writer = stream.writable.getWriter();
  writer.write(bytes).catch(() => {});
  writer.close().catch(() => {});
  const parts = [];
  let size = 0;
  for (const reader = stream.readable.getReader();;) {
    const { value, done } = await reader.read();
    if (done) return concat(parts);
    parts.push(value);
    size += value.length;
    if (size > most) {
      await reader.cancel();
      throw new RangeError(`it unpacks to more than ${most >> 20} MB`);
    }
  }
}
