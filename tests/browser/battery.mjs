// The public API of a sandbox in a page or in Node: the same cases for both. `cases` is filled by `test(name, body)`; a body
// gets `{create, sandbox, server, programs}` and throws if something is wrong. `sandbox` is shared by those that change nothing.

export const cases = [];
export const test = (name, body) => cases.push({ name, body });

export function equal(got, wanted) {
  const [a, b] = [got, wanted].map((each) => JSON.stringify(each, (_, value) => (value instanceof Uint8Array ? [...value] : value)));
  if (a !== b) throw new Error(`got ${a}, wanted ${b}`);
}

export async function raises(name, body) {
  try {
    await body();
  } catch (error) {
    if (error.name !== name) throw new Error(`raised ${error.name} (${error.message}), not ${name}`);
    return error;
  }
  throw new Error(`did not raise ${name}`);
}

export const text = async (stream) => new Response(stream).text();
export const out = async (sandbox, command, options) => (await sandbox.exec(command, options)).stdout;

// exec

test("exec gives what a command said and how it ended", async ({ sandbox }) => {
  const result = await sandbox.exec("echo hello | tr a-z A-Z; echo no >&2; exit 3");
  equal([result.stdout, result.stderr, result.exitCode, result.ok, result.timedOut, result.limit], ["HELLO\n", "no\n", 3, false, false, null]);
});
test("exec of an array is argv", async ({ sandbox }) => equal(await out(sandbox, ["printf", "%s|", "a b", "$x"]), "a b|$x|"));
test("exec takes input", async ({ sandbox }) => equal(await out(sandbox, "sort", { stdin: "b\na\n" }), "a\nb\n"));
test("exec takes an environment and a directory", async ({ sandbox }) => equal(await out(sandbox, "echo $A; pwd", { env: { A: "1" }, cwd: "/tmp" }), "1\n/tmp\n"));
test("exec merges its streams", async ({ sandbox }) => equal((await sandbox.exec("echo a; echo b >&2", { mergeStderr: true })).stdout, "a\nb\n"));
test("bytes that are no text arrive as they are", async ({ sandbox }) => equal((await sandbox.exec("printf '\\377\\0x'")).stdoutBytes, new Uint8Array([255, 0, 120])));
test("a command that does not exist is 127", async ({ sandbox }) => equal((await sandbox.exec("no-such-command")).exitCode, 127));
test("a timeout is 124, and the sandbox goes on", async ({ sandbox }) => {
  const result = await sandbox.exec("while :; do :; done", { timeout: 1 });
  equal([result.exitCode, result.timedOut, result.limit, await out(sandbox, "echo on")], [124, true, "wall_seconds", "on\n"]);
});
test("a pattern that backtracks for ever is stopped", async ({ sandbox }) => {
  const result = await sandbox.exec("echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa! | grep -P '(a+)+$'", { timeout: 1 });
  equal([result.exitCode, await out(sandbox, "echo on")], [124, "on\n"]);
});
test("a sleep is stopped", async ({ sandbox }) => equal((await sandbox.exec("sleep 60", { timeout: 0.5 })).timedOut, true));
test("a limit is named", async ({ sandbox }) => equal((await sandbox.exec("yes", { limits: { outputBytes: 100_000 } })).limit, "output_bytes"));
test("an abort signal ends a command", async ({ sandbox }) => {
  const abort = new AbortController();
  setTimeout(() => abort.abort(), 300);
  await raises("AbortError", () => sandbox.exec("sleep 60", { signal: abort.signal }));
  equal(await out(sandbox, "echo on"), "on\n");
});
test("output is heard as it comes", async ({ sandbox }) => {
  const heard = [];
  await sandbox.exec("echo a; sleep 0.3; echo b", { onStdout: (data) => heard.push(new TextDecoder().decode(data)) });
  equal(heard.join(""), "a\nb\n");
});
test("a megabyte of output arrives whole", async ({ sandbox }) => equal((await sandbox.exec("seq 200000")).stdout.length, 1288895));
test("commands run side by side", async ({ sandbox }) => {
  await sandbox.exec("rm -rf /tmp/here; mkdir /tmp/here");
  const meet = (word) => `touch /tmp/here/${word}; until [ $(ls /tmp/here | wc -l) = 3 ]; do sleep 0.05; done; echo ${word}`;
  equal(await Promise.all(["a", "b", "c"].map((word) => out(sandbox, meet(word)))), ["a\n", "b\n", "c\n"]);
});
test("a wrong option says which there are", async ({ create }) => {
  const error = await raises("TypeError", () => create({ fles: {} }));
  if (!error.message.includes("files")) throw new Error(error.message);
});
test("a wrong limit is refused", async ({ sandbox }) => raises("TypeError", () => sandbox.exec("true", { limits: { wallclock: 1 } })));
test("a wrong timeout is refused", async ({ sandbox }) => raises("RangeError", () => sandbox.exec("true", { timeout: -1 })));
test("a wrong command is refused", async ({ sandbox }) => raises("TypeError", () => sandbox.exec(42)));

// spawn and pty

test("spawn has streams both ways", async ({ sandbox }) => {
  const process = await sandbox.spawn("cat; echo end >&2; exit 5");
  const writer = process.stdin.getWriter();
  await writer.write("one\n");
  await writer.write(new Uint8Array([116, 119, 111, 10]));
  await writer.close();
  equal([await text(process.stdout), await text(process.stderr), await process.wait(), process.exited], ["one\ntwo\n", "end\n", 5, true]);
});
test("a spawned command is signalled", async ({ sandbox }) => {
  const process = await sandbox.spawn("trap 'echo got; exit 7' TERM; echo ready; while :; do sleep 0.1; done");
  const reader = process.stdout.getReader();
  await reader.read();
  process.kill();
  equal([new TextDecoder().decode((await reader.read()).value), await process.wait()], ["got\n", 7]);
});
test("a reader that does not read makes the writer wait", async ({ sandbox }) => {
  const process = await sandbox.spawn("yes | head -c 20000000; echo done >&2");
  await new Promise((resolve) => setTimeout(resolve, 300));
  equal((await text(process.stdout)).length, 20_000_000);
  equal(await process.wait(), 0);
});
test("a terminal has a size, and changes it", async ({ sandbox }) => {
  const terminal = await sandbox.pty(["bash", "--norc"], { rows: 10, cols: 40 });
  terminal.write("stty size\n");
  const reader = terminal.output.pipeThrough(new TextDecoderStream()).getReader();
  let shown = "";
  const until = async (wanted) => {
    while (!shown.includes(wanted)) {
      const { done, value } = await reader.read();
      if (done) throw new Error(shown);
      shown += value;
    }
  };
  await until("10 40");
  terminal.resize(20, 50);
  terminal.write("stty size; exit 4\n");
  await until("20 50");
  equal(await terminal.wait(), 4);
});

// files

test("files are written, read, listed and removed", async ({ sandbox }) => {
  await sandbox.files.write("/tmp/f/a.txt", "hello");
  await sandbox.files.write("/tmp/f/a.txt", " you", { append: true });
  await sandbox.files.write("/tmp/f/b", new Uint8Array([0, 255]), { mode: 0o700 });
  equal([await sandbox.files.read("/tmp/f/a.txt"), await sandbox.files.readBytes("/tmp/f/b")], ["hello you", new Uint8Array([0, 255])]);
  equal((await sandbox.files.list("/tmp/f")).map(({ name, kind, size, mode }) => [name, kind, size, mode]), [["a.txt", "file", 9, 0o644], ["b", "file", 2, 0o700]]);
  await sandbox.files.remove("/tmp/f", { recursive: true });
  equal(await sandbox.files.exists("/tmp/f"), false);
});
test("a file of many pieces arrives whole", async ({ sandbox }) => {
  const data = new Uint8Array(9_000_000).map((_, i) => i % 251);
  await sandbox.files.write("/tmp/big", data);
  equal((await sandbox.files.readBytes("/tmp/big")).length, 9_000_000);
  equal(await out(sandbox, "cksum < /tmp/big | cut -d' ' -f2; rm /tmp/big"), "9000000\n");
});
test("a missing file is a FileError with Linux's number", async ({ sandbox }) => {
  const error = await raises("FileError", () => sandbox.files.read("/nope"));
  equal([error.errno, error.code, error.path], [2, "ENOENT", "/nope"]);
});
test("writeMany tells of each", async ({ sandbox }) => {
  const results = await sandbox.files.writeMany([["/tmp/m/a", "1"], ["/dev", "2"], ["/tmp/m/b", "3"]]);
  equal(results.map(({ path, error }) => [path, error?.code ?? null]), [["/tmp/m/a", null], ["/dev", "EISDIR"], ["/tmp/m/b", null]]);
});
test("links, renames and modes", async ({ sandbox }) => {
  const { files } = sandbox;
  await files.write("/tmp/l/a", "x");
  await files.symlink("a", "/tmp/l/b");
  await files.rename("/tmp/l/a", "/tmp/l/c");
  await files.chmod("/tmp/l/c", 0o600);
  equal([await files.readlink("/tmp/l/b"), (await files.stat("/tmp/l/c")).mode, (await files.stat("/tmp/l/b", { follow: false })).kind], ["a", 0o600, "symlink"]);
});
test("initial files are there", async ({ create }) => {
  const sandbox = await create({ files: { "a.txt": "hi", "/etc/b": ["#!/bin/sh\necho b", 0o755] }, env: { A: "1" }, user: "me", hostname: "jar" });
  equal(await out(sandbox, "cat a.txt; /etc/b; echo $A; whoami; hostname"), "hib\n1\nme\njar\n");
  sandbox.close();
});

// tools

test("a function is a command", async ({ sandbox }) => {
  equal(await out(sandbox, "add 1 2; greet --name you; greet '{\"name\": \"me\"}'"), "3\nhello you\nhello me\n");
});
test("what a function raises is an exit code and a line", async ({ sandbox }) => {
  const result = await sandbox.exec("fail now");
  equal([result.exitCode, result.stderr], [1, "fail: it is now\n"]);
});
test("a function's result may be data", async ({ sandbox }) => equal(await out(sandbox, "data | jq -c .a"), "[1,2]\n"));

// network

test("there is no network unless it is granted", async ({ sandbox, server }) => {
  const result = await sandbox.exec(`curl -s ${server}/hello`);
  if (result.exitCode === 0 || result.stdout) throw new Error(JSON.stringify(result));
});
test("a granted host is reached, others are not", async ({ create, server }) => {
  const { host } = new URL(server);
  const events = [];
  const sandbox = await create({ network: [host], onEvent: (event) => event.type === "network" && events.push(event.allowed) });
  equal(await out(sandbox, `curl -s ${server}/hello`), "hello from the server\n");
  equal((await sandbox.exec("curl -s http://example.invalid/")).exitCode === 0, false);
  equal(events, [true, false]);
  sandbox.close();
});
test("a policy sees the request and may answer itself", async ({ create }) => {
  const seen = [];
  const sandbox = await create({ network: { policy: (request) => {
    seen.push([request.method, request.url, new TextDecoder().decode(request.body)]);
    return new Response("made up", { status: 201, headers: { "x-a": "b" } });
  } } });
  equal(await out(sandbox, "curl -s -i -d body http://anything.test/x | tr -d '\\r' | grep -E '^HTTP|^x-a|^made'"), "HTTP/1.1 201 \nx-a: b\nmade up\n".trimEnd() + "\n");
  equal(seen, [["POST", "http://anything.test/x", "body"]]);
  sandbox.close();
});
test("a policy that fails denies", async ({ create }) => {
  const sandbox = await create({ network: { policy: () => { throw new Error("broken"); } } });
  const result = await sandbox.exec("curl -sS http://anything.test/");
  if (result.exitCode === 0 || !result.stderr.includes("denied")) throw new Error(JSON.stringify(result));
  sandbox.close();
});
test("a wrong grant is refused", async ({ create }) => raises("TypeError", () => create({ network: ["http://x/"] })));

// Python

test("python3 is a command, with the sandbox's files", async ({ sandbox }) => {
  await sandbox.files.write("/tmp/in", "some words");
  equal(await out(sandbox, "cd /tmp; python3 -c 'open(\"out\", \"w\").write(open(\"in\").read().upper())'; cat out"), "SOME WORDS");
});
test("pip installs packages for python3", async ({ sandbox }) => {
  await sandbox.files.write("/tmp/w/hi.py", "WORD = 'hi'\n");
  await sandbox.files.write("/tmp/w/pyproject.toml", '[project]\nname = "hi"\nversion = "1.0"\n[build-system]\nrequires = ["setuptools"]\n');
  equal(await out(sandbox, "pip install -q /tmp/w && pip freeze"), "hi @ file:///tmp/w\n");
  equal(await out(sandbox, "python3 -c 'import hi; print(hi.WORD)'"), "hi\n");
});
test("pkg lists what is installed", async ({ sandbox }) => equal((await sandbox.exec("pkg list")).exitCode, 0));
test("python3 is part of a pipeline", async ({ sandbox }) => equal(await out(sandbox, "seq 5 | python3 -c 'import sys; print(sum(map(int, sys.stdin)))' | rev"), "51\n"));
test("python3 has arguments, an exit code and a traceback", async ({ sandbox }) => {
  await sandbox.files.write("/tmp/p.py", "import sys\nprint(sys.argv[1:], __name__)\nsys.exit(int(sys.argv[1]))\n");
  equal((await sandbox.exec("python3 /tmp/p.py 3 x")).exitCode, 3);
  const result = await sandbox.exec("python3 -c 'open(\"/nope\")'");
  if (result.exitCode !== 1 || !result.stderr.endsWith("FileNotFoundError: [Errno 2] No such file or directory: '/nope'\n")) throw new Error(result.stderr);
});
test("python3 starts the sandbox's programs", async ({ sandbox }) => {
  equal(await out(sandbox, "python3 -c 'import subprocess; print(subprocess.check_output([\"sh\", \"-c\", \"echo a | tr a b\"]))'"), "b'b\\n'\n");
});
test("python3 is stopped at its time", async ({ sandbox }) => equal(await out(sandbox, "timeout 1 python3 -c 'while True: pass'; echo $?"), "124\n"));
test("python3 raises MemoryError", async ({ sandbox }) => {
  const result = await sandbox.exec("python3 -c 'x = [bytearray(100_000_000) for _ in range(100)]'");
  if (!result.stderr.includes("MemoryError")) throw new Error(result.stderr);
});
test("asyncio works in python3", async ({ sandbox }) => equal(await out(sandbox, "python3 -c 'import asyncio; asyncio.run(asyncio.sleep(0.01)); print(1)'"), "1\n"));
test("python3 has its own library, time zones and help", async ({ sandbox }) => {
  const code = "import zoneinfo, datetime, sysconfig, pydoc; print(datetime.datetime(2020, 7, 1, tzinfo=zoneinfo.ZoneInfo('Europe/Berlin')).utcoffset(), len(sysconfig.get_config_vars()) > 100)";
  equal(await out(sandbox, `python3 -c "${code}"`), "2:00:00 True\n");
});
test("sandbox.python keeps its state", async ({ sandbox }) => {
  await sandbox.python.run("x = 41");
  const result = await sandbox.python.run("print('said'); x + 1");
  equal([result.ok, result.value, result.stdout], [true, 42, "said\n"]);
});
test("values cross as plain data", async ({ sandbox }) => {
  const { value } = await sandbox.python.run("{'a': [1, 2.5, None, True], 'b': b'x', 'c': 'é'}");
  equal(value, { a: [1, 2.5, null, true], b: new Uint8Array([120]), c: "é" });
  equal((await sandbox.python.run("2 ** 70")).value === 2n ** 70n, true);
});
test("code calls functions of the owner's", async ({ sandbox }) => {
  equal((await sandbox.python.run("twice(21)", { globals: { twice: (n) => 2 * n } })).value, 42);
  const failed = await sandbox.python.run("twice(1)", { globals: { twice: () => { throw new Error("not today"); } } });
  equal([failed.ok, failed.error.message], [false, "not today"]);
});
test("an error of the code is a result", async ({ sandbox }) => {
  const { ok, error } = await sandbox.python.run("1/0");
  equal([ok, error.code, error.name], [false, "RUNTIME_ERROR", "ZeroDivisionError"]);
  equal((await sandbox.python.run("def")).error.code, "SYNTAX_ERROR");
});
test("a run that takes too long is ended, and the next one begins anew", async ({ sandbox }) => {
  equal((await sandbox.python.run("while True: pass", { wallMs: 1000 })).error.code, "WALL_LIMIT");
  equal((await sandbox.python.run("1")).value, 1);
});

// state

test("a snapshot has the files and the environment", async ({ create }) => {
  const first = await create({ env: { KEPT: "yes" } });
  await first.exec("echo a > f; ln f g; ln -s f h; mkdir -m 700 d; mkfifo p; touch -d 2001-02-03 f");
  const snapshot = await first.snapshot("made");
  first.close();
  const second = await create({ snapshot });
  equal(await out(second, "cat g h; stat -c '%h %a %F' f d p; stat -c %Y f; echo $KEPT"), "a\na\n2 644 regular file\n2 700 directory\n1 644 fifo\n981158400\nyes\n");
  second.close();
});
test("a damaged snapshot is refused", async ({ create, sandbox }) => {
  const snapshot = await sandbox.snapshot();
  snapshot[snapshot.length >> 1] ^= 1;
  const error = await raises("SandboxError", () => create({ snapshot }));
  if (!error.message.includes("damaged")) throw new Error(error.message);
});

// the end

test("a closed sandbox says so", async ({ create }) => {
  const sandbox = await create();
  const running = sandbox.exec("sleep 60");
  sandbox.close();
  sandbox.close();
  await raises("SandboxClosed", () => running);
  await raises("SandboxClosed", () => sandbox.exec("true"));
  await raises("SandboxClosed", () => sandbox.files.read("/etc/passwd"));
});
test("fork says what can be done instead", async ({ sandbox }) => {
  const error = await raises("NotInABrowser", () => sandbox.fork());
  if (!error.message.includes("snapshot")) throw new Error(error.message);
});
test("two sandboxes know nothing of each other", async ({ create, sandbox }) => {
  const other = await create();
  await other.exec("echo secret > /tmp/secret");
  equal((await sandbox.exec("cat /tmp/secret")).exitCode, 1);
  other.close();
});
