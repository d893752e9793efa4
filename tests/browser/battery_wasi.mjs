// WebAssembly programs of the sandbox: `programs` are in its PATH (tests/browser/programs.py).
import { equal, out, test } from "./battery.mjs";

test("a wasm program has streams and a status", async ({ sandbox }) => equal(await out(sandbox, "echo through | copy | tr a-z A-Z; echo ${PIPESTATUS[1]}"), "THROUGH\n7\n"));
test("a wasm program reads files and arguments", async ({ sandbox }) => equal(await out(sandbox, "echo hello > /tmp/x; show tmp/x; show tmp/nope; echo $?"), "hello\n44\n"));
test("a wasm program that traps is aborted", async ({ sandbox }) => {
  const { stderr, exitCode } = await sandbox.exec(["trapped"]);
  equal([exitCode, stderr.startsWith("trapped: ended by a trap: ")], [134, true]);
});
test("a wasm program is stopped at its time", async ({ sandbox }) => equal(await out(sandbox, "timeout 1 spin; echo $?"), "124\n"));
test("a wasm program's processor time is limited", async ({ sandbox }) => equal((await sandbox.exec("spin", { limits: { cpuSeconds: 1 } })).limit, "cpu_seconds"));
test("a wasm program's start function is limited, too", async ({ sandbox }) => equal((await sandbox.exec("starts", { limits: { cpuSeconds: 1 } })).limit, "cpu_seconds"));
test("a wasm program's memory is limited", async ({ sandbox }) => {
  equal((await sandbox.exec("grow", { limits: { memoryBytes: 100 << 20 } })).exitCode, 3);
  equal((await sandbox.exec("large", { limits: { memoryBytes: 100 << 20 } })).exitCode, 126);
});
test("a wasm program nested too deep is aborted", async ({ sandbox }) => equal((await sandbox.exec("deep")).exitCode, 134));
test("what is no wasm program is refused", async ({ sandbox }) => {
  const { stdout, stderr } = await sandbox.exec("for each in library foreign bad name collected; do $each; echo $?; done");
  equal([stdout, stderr.split("\n").filter((line) => line.includes(": cannot execute: ")).length], ["126\n".repeat(5), 5]);
});
test("wild addresses are EFAULT", async ({ sandbox }) => equal(await out(sandbox, "wild; echo $?; poll; echo $?"), "21\n28\n"));
test("descriptors are renumbered", async ({ sandbox }) => equal(await out(sandbox, "echo a | renumber; echo $?"), "0\n"));
test("a wasm file that changed is another program", async ({ sandbox, programs }) => {
  const bytes = (name) => Uint8Array.from(atob(programs[name]), (c) => c.charCodeAt(0));
  await sandbox.files.write("/tmp/prog.wasm", bytes("copy"), { mode: 0o755 });
  equal((await sandbox.exec("echo one | ./prog.wasm", { cwd: "/tmp" })).exitCode, 7);
  await sandbox.files.write("/tmp/prog.wasm", bytes("grow"), { mode: 0o755 });
  equal((await sandbox.exec("./prog.wasm", { cwd: "/tmp" })).exitCode, 3);
});
test("a program of C walks files", async ({ sandbox }) => {
  await sandbox.exec("rm -rf tree; mkdir -p tree/a/b; echo 12345 > tree/a/x.txt; printf 1 > tree/a/b/y.txt; touch tree/.z");
  equal(await out(sandbox, "cd tree; echo . | census"), "       7      2 .txt\n       0      1 (none)\n");
  equal(await out(sandbox, "echo nothing | census", { mergeStderr: true }), "census: nothing: No such file or directory\n");
});
test("a program of C uses files in every way", async ({ sandbox }) => {
  const { stdout, stderr, exitCode } = await sandbox.exec("rm -rf /tmp/ways; mkdir /tmp/ways; cd /tmp/ways; X=y ways one 'two words'");
  equal([stderr, exitCode, stdout.split("\n")], ["", 5, [
    "one two words y", "wrote 11", "tell 11 at 6: world", "size 11 file 1", "append hello world!", "truncated to 5", "renamed 1", "ENOENT 1", "EEXIST 1",
    "dir 0", "entries a b sub", "link b -> a", "rmdir ENOTEMPTY 1", "times 1000000000", "slept 1", "random 1", "pipe 1", "",
  ]]);
});
