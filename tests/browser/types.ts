// What belljar.d.ts lets through, and what it does not: checked by tsc, never run.
import { FileError, Sandbox, snapshots, type ExecResult, type Options } from "belljar";

const options: Options = { files: { "a.txt": "hello\n", b: ["#!/bin/sh", 0o755] }, tools: { add: (a: string, b: string) => Number(a) + Number(b) } };
await using sandbox = await Sandbox.create(options);
const result: ExecResult = await sandbox.exec(["cat", "a.txt"], { timeout: 60, signal: AbortSignal.timeout(1000) });
const { value, unsent } = await sandbox.js.run("6 * 7", { cpuMs: 1000, globals: { twice: (n: number) => 2 * n, list: [1, null, "x"] } });
const python = await sandbox.python.run("6 * 7", { wallMs: 1000 });
const process = await sandbox.spawn("cat");
await process.stdin.getWriter().write("x\n");
const reader: ReadableStreamDefaultReader<Uint8Array> = process.stdout.getReader();
const bytes: Uint8Array = await sandbox.snapshot("label");
await snapshots.save("name", bytes);
await Sandbox.restore(bytes, { network: { allow: ["example.com"], policy: async ({ url }) => url.startsWith("https:") } });
try {
  await sandbox.files.read("/nope");
} catch (error) {
  if (error instanceof FileError) console.log(error.errno, error.code, error.path);
}
console.log(result.stdout, value, unsent, python.outputs, reader);

// @ts-expect-error: there is no such option
await Sandbox.create({ fles: {} });
// @ts-expect-error: a number is no command
await sandbox.exec(42);
// @ts-expect-error: a tool is a function
await Sandbox.create({ tools: { a: 1 } });
// @ts-expect-error: a Python interpreter has no such limit
await sandbox.python.run("1", { memoryMb: 1 });
