// More of the API: what is refused, limits, streams, files, tools, network, events, state.
import { equal, out, raises, test, text } from "./battery.mjs";

const decode = (data) => new TextDecoder().decode(data);

// what is refused

test("an unknown option is refused", async ({ create }) => {
  const error = await raises("TypeError", () => create({ nothing: 1 }));
  if (!error.message.includes('"nothing"')) throw new Error(error.message);
});
test("an unknown limit is refused", async ({ sandbox }) => raises("TypeError", () => sandbox.exec("true", { limits: { wall: 1 } })));
test("a limit must be positive", async ({ sandbox }) => raises("RangeError", () => sandbox.exec("true", { limits: { steps: 0 } })));
test("a timeout must be positive", async ({ sandbox }) => raises("RangeError", () => sandbox.exec("true", { timeout: -1 })));
test("no command is no command", async ({ sandbox }) => raises("TypeError", () => sandbox.exec([])));
test("a number is no command", async ({ sandbox }) => raises("TypeError", () => sandbox.exec(7)));
test("a tool is a function", async ({ create }) => raises("TypeError", () => create({ tools: { a: 1 } })));
test("a tool has the name of a command", async ({ create }) => raises("TypeError", () => create({ tools: { "a b": () => 1 } })));
test("a snapshot is bytes", async ({ create }) => raises("SandboxError", () => create({ snapshot: new Uint8Array([1, 2, 3]) })));
test("code is text", async ({ sandbox }) => raises("TypeError", async () => sandbox.python.run(1)));

// limits

test("a limit of steps ends a loop", async ({ sandbox }) => equal((await sandbox.exec("while :; do :; done", { limits: { steps: 20_000 } })).limit, "steps"));
test("a limit of processor time ends a loop", async ({ sandbox }) => equal((await sandbox.exec("while :; do :; done", { limits: { cpuSeconds: 1 } })).limit, "cpu_seconds"));
test("a limit of wall time ends a sleep", async ({ sandbox }) => {
  const { limit, timedOut } = await sandbox.exec("sleep 100", { limits: { wallSeconds: 0.5 } });
  equal([limit, timedOut], ["wall_seconds", false]);
});
test("output beyond its limit is cut", async ({ sandbox }) => {
  const result = await sandbox.exec("yes", { limits: { outputBytes: 50_000 } });
  equal([result.truncated, result.stdoutBytes.length <= 50_000, result.ok], [true, true, false]);
});
test("files have a limit of bytes", async ({ create }) => {
  const sandbox = await create({ limits: { fileBytes: 2 << 20 } });
  const result = await sandbox.exec("head -c 4000000 /dev/zero > /tmp/z");
  if (result.exitCode === 0 || !/No space left/.test(result.stderr)) throw new Error(JSON.stringify(result));
  equal(await out(sandbox, "rm /tmp/z; echo on"), "on\n");
  sandbox.close();
});
test("a limit of processes stops a bomb", async ({ sandbox }) => {
  const result = await sandbox.exec("f() { f | f & }; f; wait", { limits: { processes: 20, wallSeconds: 20 } });
  equal([result.ok, await out(sandbox, "echo on")], [false, "on\n"]);
});
test("a signal that is aborted starts nothing", async ({ sandbox }) => {
  await raises("AbortError", () => sandbox.exec("touch /tmp/started", { signal: AbortSignal.abort() }));
  equal(await sandbox.files.exists("/tmp/started"), false);
});
test("an aborted signal makes no sandbox", async ({ create }) => raises("AbortError", () => create({ signal: AbortSignal.abort() })));
test("a signal closes its sandbox", async ({ create }) => {
  const abort = new AbortController();
  const sandbox = await create({ signal: abort.signal });
  abort.abort();
  equal(sandbox.closed, true);
  await raises("SandboxClosed", () => sandbox.exec("true"));
});

// exec and streams

test("input may be bytes", async ({ sandbox }) => equal((await sandbox.exec("cat", { stdin: new Uint8Array([1, 0, 255]) })).stdoutBytes, new Uint8Array([1, 0, 255])));
test("errors are bytes, too", async ({ sandbox }) => equal((await sandbox.exec("printf '\\376' >&2")).stderrBytes, new Uint8Array([254])));
test("a result says how long it took", async ({ sandbox }) => equal((await sandbox.exec("sleep 0.2")).durationMs >= 150, true));
test("both streams are heard", async ({ sandbox }) => {
  const heard = { out: "", err: "" };
  await sandbox.exec("echo a; echo b >&2", { onStdout: (data) => { heard.out += decode(data); }, onStderr: (data) => { heard.err += decode(data); } });
  equal(heard, { out: "a\n", err: "b\n" });
});
test("spawn takes input that is there", async ({ sandbox }) => {
  const process = await sandbox.spawn("wc -c", { stdin: "12345" });
  equal([(await text(process.stdout)).trim(), await process.wait()], ["5", 0]);
});
test("spawn has a directory and an environment", async ({ sandbox }) => {
  const process = await sandbox.spawn("pwd; echo $B", { cwd: "/tmp", env: { B: "2" }, stdin: "" });
  equal([await text(process.stdout), await process.wait()], ["/tmp\n2\n", 0]);
});
test("streams can be piped through others", async ({ sandbox }) => {
  const process = await sandbox.spawn("echo hé", { stdin: "" });
  let said = "";
  for await (const part of process.stdout.pipeThrough(new TextDecoderStream())) said += part;
  equal([said, await process.wait()], ["hé\n", 0]);
});
test("a kill by number is told", async ({ sandbox }) => {
  const process = await sandbox.spawn("sleep 100");
  process.kill(9);
  equal([await process.wait(), await process.wait()], [137, 137]);
});
test("a spawned process has a number that others see", async ({ sandbox }) => {
  const process = await sandbox.spawn("sleep 100");
  equal((await sandbox.exec(`kill -TERM ${process.pid}`)).exitCode, 0);
  equal(await process.wait(), 143);
});
test("two spawned processes talk by a fifo", async ({ sandbox }) => {
  await sandbox.exec("rm -f /tmp/ff; mkfifo /tmp/ff");
  const reader = await sandbox.spawn("cat /tmp/ff", { stdin: "" });
  const writer = await sandbox.spawn("echo through > /tmp/ff", { stdin: "" });
  equal([await text(reader.stdout), await reader.wait(), await writer.wait()], ["through\n", 0, 0]);
});
test("close ends what was spawned", async ({ create }) => {
  const sandbox = await create();
  const process = await sandbox.spawn("sleep 100");
  const ended = raises("SandboxClosed", () => process.wait());
  sandbox.close();
  await ended;
});
test("a terminal's program is killed", async ({ sandbox }) => {
  const terminal = await sandbox.pty(["sleep", "100"]);
  terminal.kill("KILL");
  equal(await terminal.wait(), 137);
});
test("a terminal is one to its program", async ({ sandbox }) => {
  const terminal = await sandbox.pty("test -t 0 && test -t 1 && echo $TERM");
  equal((await text(terminal.output)).trim(), "xterm-256color");
});

// files

test("a missing directory is ENOENT", async ({ sandbox }) => equal((await raises("FileError", () => sandbox.files.list("/nope"))).code, "ENOENT"));
test("directories are made, with their parents if asked", async ({ sandbox }) => {
  await sandbox.files.mkdir("/tmp/mk/a/b", { parents: true });
  equal((await sandbox.files.stat("/tmp/mk/a/b")).kind, "directory");
  equal((await raises("FileError", () => sandbox.files.mkdir("/tmp/mk"))).code, "EEXIST");
});
test("a directory with something in it is not removed by mistake", async ({ sandbox }) => {
  await sandbox.files.write("/tmp/full/x", "1");
  equal((await raises("FileError", () => sandbox.files.remove("/tmp/full"))).code, "ENOTEMPTY");
});
test("a loop of links is ELOOP", async ({ sandbox }) => {
  await sandbox.files.symlink("/tmp/loop2", "/tmp/loop1");
  await sandbox.files.symlink("/tmp/loop1", "/tmp/loop2");
  equal((await raises("FileError", () => sandbox.files.read("/tmp/loop1"))).code, "ELOOP");
});
test("a name that is too long is ENAMETOOLONG", async ({ sandbox }) => equal((await raises("FileError", () => sandbox.files.write(`/tmp/${"x".repeat(300)}`, ""))).code, "ENAMETOOLONG"));
test("a directory is no file", async ({ sandbox }) => equal((await raises("FileError", () => sandbox.files.read("/tmp"))).code, "EISDIR"));
test("a stat has a date", async ({ sandbox }) => {
  await sandbox.exec("touch -d @1000000000 /tmp/old");
  equal((await sandbox.files.stat("/tmp/old")).mtime.toISOString(), "2001-09-09T01:46:40.000Z");
});
test("names may be any text", async ({ sandbox }) => {
  await sandbox.files.write("/tmp/ñ ☃/a\nb", "x");
  equal((await sandbox.files.list("/tmp/ñ ☃")).map(({ name }) => name), ["a\nb"]);
});
test("what a command wrote is read", async ({ sandbox }) => {
  await sandbox.exec("umask 077; seq 3 > /tmp/private");
  equal([await sandbox.files.read("/tmp/private"), (await sandbox.files.stat("/tmp/private")).mode], ["1\n2\n3\n", 0o600]);
});
test("a rename replaces a file", async ({ sandbox }) => {
  await sandbox.files.write("/tmp/r1", "new");
  await sandbox.files.write("/tmp/r2", "old");
  await sandbox.files.rename("/tmp/r1", "/tmp/r2");
  equal([await sandbox.files.read("/tmp/r2"), await sandbox.files.exists("/tmp/r1")], ["new", false]);
});

// tools and Python

test("a tool may take its time", async ({ sandbox }) => equal(await out(sandbox, "later done"), "done, after a while\n"));
test("a tool may give bytes", async ({ sandbox }) => equal((await sandbox.exec("raw")).stdoutBytes, new Uint8Array([0, 255, 10])));
test("a tool's options may have an equals sign", async ({ sandbox }) => equal(await out(sandbox, "greet --name=you"), "hello you\n"));
test("a tool is part of a pipeline", async ({ sandbox }) => equal(await out(sandbox, "add 40 2 | sed s/^/=/"), "=42\n"));
test("tools are functions in python", async ({ sandbox }) => equal((await sandbox.python.run("add(1, 2) + 3")).value, 6));
test("python is interrupted", async ({ sandbox }) => {
  await sandbox.python.run("kept = 5");
  const running = sandbox.python.run("import time\nprint('begun')\nwhile True: time.sleep(0.01)", { onStdout: () => sandbox.python.interrupt() });
  const { ok, error } = await running;
  equal([ok, error.name, (await sandbox.python.run("kept")).value], [false, "KeyboardInterrupt", 5]);
});
test("python forgets when it is reset", async ({ sandbox }) => {
  await sandbox.python.run("gone = 1");
  sandbox.python.reset();
  equal((await sandbox.python.run("'gone' in globals()")).value, false);
});
test("python's processor time is limited", async ({ sandbox }) => equal((await sandbox.exec("python3 -c 'while True: pass'", { limits: { cpuSeconds: 1 } })).limit, "cpu_seconds"));

// network and events

test("a pattern grants the hosts below it", async ({ create }) => {
  const seen = [];
  const sandbox = await create({ network: { allow: ["*.example.test"], policy: (request) => { seen.push(new URL(request.url).host); return new Response("yes"); } } });
  equal(await out(sandbox, "curl -s http://a.example.test/; curl -s http://example.test/; curl -s http://a.example.test:81/; curl -s http://other.test/"), "yes");
  equal(seen, ["a.example.test"]);
  sandbox.close();
});
test("a policy sees headers and redirects", async ({ create }) => {
  const seen = [];
  const sandbox = await create({ network: { policy: ({ url, method, headers }) => {
    seen.push([method, url, headers.get("x-mark")]);
    if (url.endsWith("/old")) return new Response(null, { status: 302, headers: { location: "http://b.test/new" } });
    return url.includes("b.test") ? new Response("arrived") : false;
  } } });
  equal(await out(sandbox, "curl -sL -H 'x-mark: 1' http://a.test/old"), "arrived");
  equal((await sandbox.exec("curl -s http://c.test/")).exitCode === 0, false);
  equal(seen, [["GET", "http://a.test/old", "1"], ["GET", "http://b.test/new", "1"], ["GET", "http://c.test/", null]]);
  sandbox.close();
});
test("events tell of commands and limits, and one that fails harms nothing", async ({ create }) => {
  const events = [];
  const sandbox = await create({ onEvent: (event) => { events.push(event); throw new Error("mine"); } });
  await sandbox.exec("exit 3");
  await sandbox.exec("yes", { limits: { outputBytes: 1000 } });
  equal(events.map(({ type, exitCode, limit }) => [type, exitCode ?? limit]), [["exec", 3], ["limit", "output_bytes"], ["exec", 137]]);
  equal(events.every(({ time }) => Math.abs(Date.now() - time) < 3_600_000), true);
  sandbox.close();
});

// state

test("a snapshot of a restored sandbox is whole, and settings may change", async ({ create }) => {
  const first = await create({ files: { "/a": "1" }, env: { X: "x" } });
  const second = await create({ snapshot: await first.snapshot() });
  await second.exec("echo 2 > /b; rm /a");
  const third = await create({ snapshot: await second.snapshot("third"), files: { "/c": "3" }, tools: { three: () => 3 } });
  equal(await out(third, "cat /a /b /c; three", { mergeStderr: true }), "cat: /a: No such file or directory\n2\n33\n");
  for (const sandbox of [first, second, third]) sandbox.close();
});
test("a snapshot is of its moment", async ({ sandbox, create }) => {
  await sandbox.files.write("/tmp/moment", "before");
  const snapshot = await sandbox.snapshot();
  await sandbox.files.write("/tmp/moment", "after");
  const other = await create({ snapshot });
  equal(await other.files.read("/tmp/moment"), "before");
  other.close();
});
test("stats are numbers", async ({ sandbox }) => {
  const stats = await sandbox.stats();
  equal(Object.values(stats).length > 0 && Object.values(stats).every((value) => typeof value === "number"), true);
});
