// Links that hold files, honest ones and others: node links.mjs PAGE. Nothing is printed if all is right.
import assert from "node:assert/strict";
import { deflateRawSync } from "node:zlib";
import { pathToFileURL } from "node:url";

const at = (name) => import(pathToFileURL(`${process.argv[2]}/${name}`));
const { LINK_MAX, makeFragment, parseFragment } = await at("link.mjs");
const { encode } = await at("msgpack.mjs");
const bytes = (text) => new TextEncoder().encode(text);
const forged = (data) => `#files=${deflateRawSync(data).toString("base64url")}`;
const file = (path, mode = 0o644, data = bytes("x")) => encode([[path, mode, data]]);

const files = [["/workspace/a.txt", 0o644, bytes("hello\n".repeat(1000))], ["/workspace/d/ü b.sh", 0o755, new Uint8Array([0, 255, 10])]];
const fragment = await makeFragment(files);
assert.ok(fragment.length < 200, fragment);
assert.match(fragment, /^#files=[\w-]+$/);
assert.deepEqual(await parseFragment(fragment), files);
assert.equal(await parseFragment(""), null);
assert.equal(await parseFragment("#other"), null);
const noise = crypto.getRandomValues(new Uint8Array(60_000));
await assert.rejects(makeFragment([["/workspace/noise", 0o644, noise]]), /too much for a link/);

for (const [what, hostile, why] of [
  ["too long", `#files=${"A".repeat(LINK_MAX)}`, /too long/],
  ["no base64", "#files=***", /damaged/],
  ["no deflate", "#files=AAAA", /damaged/],
  ["cut off", fragment.slice(0, -20), /damaged/],
  ["a bomb", forged(encode([["/workspace/zeros", 0o644, new Uint8Array(16 << 20)]])), /more than 4 MB/],
  ["no list", forged(encode({ a: 1 })), /may not have/],
  ["no files", forged(encode([1, 2])), /may not have/],
  ["too many", forged(encode(Array.from({ length: 1001 }, (_, i) => [`/workspace/${i}`, 0o644, bytes("")]))), /may not have/],
  ["nested too deep", forged(new Uint8Array(100_000).fill(0x91)), /damaged/],
  ["a length that is not there", forged(new Uint8Array([0xdd, 0xff, 0xff, 0xff, 0xff])), /damaged/],
  ...["/etc/passwd", "/home/agent/.bashrc", "/workspace", "/workspace/", "/workspace/../etc/passwd", "/workspace//a", "/workspace/./a", "workspace/a", "/workspace/a\nb",
    "/workspace/a\x1b[2J", "/workspace/\u202etxt.sh", "/workspace/\0", `/workspace/${"a".repeat(2000)}`, 5, null].map((path) => [`the path ${path}`, forged(file(path)), /may not have/]),
  ...[0o4755, -1, 1.5, "644"].map((mode) => [`the mode ${mode}`, forged(file("/workspace/a", mode)), /may not have/]),
  ["text as contents", forged(file("/workspace/a", 0o644, "text")), /may not have/],
]) await assert.rejects(parseFragment(hostile), why, what);
