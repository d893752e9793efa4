// Guest JavaScript: `node`, a program with the sandbox's files and processes; and `sandbox.js`, an interpreter that has none.
import { equal, out, raises, test } from "./battery.mjs";

// node

test("node evaluates and prints", async ({ sandbox }) => equal(await out(sandbox, "node -e 'console.log([1, {a: 2}])'; node -p '6 * 7'"), "[ 1, { a: 2 } ]\n42\n"));
test("node runs a script with arguments and an exit code", async ({ sandbox }) => {
  await sandbox.files.write("/tmp/js/args.js", "console.log(process.argv.slice(2), __filename);\nprocess.exit(process.argv.length);\n");
  const result = await sandbox.exec("node /tmp/js/args.js a b");
  equal([result.stdout, result.exitCode], ["[ 'a', 'b' ] /tmp/js/args.js\n", 4]);
});
test("node is part of a pipeline", async ({ sandbox }) => {
  const code = "let s = ''; process.stdin.on('data', (d) => s += d).on('end', () => console.log(s.trim().split('\\n').map(Number).reduce((a, b) => a + b)))";
  await sandbox.files.write("/tmp/js/sum.js", code);
  equal(await out(sandbox, "seq 10 | node /tmp/js/sum.js | rev"), "55\n");
});
test("node has the sandbox's files", async ({ sandbox }) => {
  await sandbox.files.write("/tmp/js/in.txt", "some words");
  await sandbox.files.write("/tmp/js/files.js", `
    const fs = require("fs"), path = require("path");
    fs.writeFileSync("out.txt", fs.readFileSync("in.txt", "utf8").toUpperCase());
    fs.mkdirSync("d/e", { recursive: true });
    fs.appendFileSync("d/e/f", "x");
    fs.renameSync("d/e/f", "d/g");
    console.log(fs.readdirSync("d"), fs.statSync("d/g").size, fs.existsSync("d/e/f"), path.resolve("d"));
    try { fs.readFileSync("/nope"); } catch (error) { console.log(error.code, error.errno, error.message); }
    fs.promises.readFile("out.txt", "utf8").then(console.log);
  `);
  equal(await out(sandbox, "cd /tmp/js; rm -rf d; node files.js"), "[ 'e', 'g' ] 1 false /tmp/js/d\nENOENT -2 ENOENT: no such file or directory, open '/nope'\nSOME WORDS\n");
});
test("node starts the sandbox's programs", async ({ sandbox }) => {
  await sandbox.files.write("/tmp/js/child.js", `
    const { execSync, spawnSync, spawn } = require("child_process");
    console.log(String(execSync("echo a | tr a b")).trim(), spawnSync("sh", ["-c", "exit 3"]).status);
    const child = spawn("cat");
    child.stdout.on("data", (data) => console.log("heard", String(data)));
    child.on("close", (code) => console.log("closed", code));
    child.stdin.end("words");
  `);
  equal(await out(sandbox, "node /tmp/js/child.js"), "b 3\nheard words\nclosed 0\n");
});
test("node tells of what nobody caught", async ({ sandbox }) => {
  await sandbox.files.write("/tmp/js/throws.js", "function f() {\n  throw new TypeError('bad');\n}\nf();\n");
  const { stderr, exitCode } = await sandbox.exec("node /tmp/js/throws.js");
  equal([exitCode, stderr.includes("TypeError: bad"), stderr.includes("/tmp/js/throws.js:2")], [1, true, true]);
  equal((await sandbox.exec("node -e 'Promise.reject(new Error(\"late\"))'")).exitCode, 1);
});
test("node has an event loop", async ({ sandbox }) => {
  const code = "setImmediate(() => { console.log(3); setTimeout(() => console.log(4), 20); }); Promise.resolve().then(() => console.log(2)); console.log(1)";
  equal(await out(sandbox, ["node", "-e", code]), "1\n2\n3\n4\n");
});
test("node imports modules", async ({ sandbox }) => {
  await sandbox.files.write("/tmp/js/lib/index.js", "exports.one = 1; exports.data = require('./data.json');");
  await sandbox.files.write("/tmp/js/lib/data.json", '{"two": 2}');
  await sandbox.files.write("/tmp/js/three.mjs", "export default 3; export const four = await Promise.resolve(4);");
  await sandbox.files.write("/tmp/js/main.mjs", "import three, { four } from './three.mjs';\nimport lib from './lib/index.js';\nimport fs from 'node:fs';\nconsole.log(lib.one, lib.data.two, three, four, typeof fs.readFileSync);");
  equal(await out(sandbox, "node /tmp/js/main.mjs"), "1 2 3 4 function\n");
});
test("node takes TypeScript", async ({ sandbox }) => {
  await sandbox.files.write("/tmp/js/typed.ts", "interface A { n: number }\nconst a: A = { n: 5 };\nconsole.log(a.n as number);\n");
  equal(await out(sandbox, "node /tmp/js/typed.ts"), "5\n");
});
test("node knows its surroundings", async ({ sandbox }) => {
  equal(await out(sandbox, "cd /tmp; A=b node -p '[process.env.A, process.cwd(), process.platform, typeof process.pid].join()'"), "b,/tmp,linux,number\n");
});
test("node ends by a signal", async ({ sandbox }) => {
  const process = await sandbox.spawn(["node", "-e", "console.log('ready'); setInterval(() => {}, 1000);"]);
  await process.stdout.getReader().read();
  process.kill();
  equal(await process.wait(), 143);
});
test("node is stopped at its time", async ({ sandbox }) => equal(await out(sandbox, "timeout 1 node -e 'for (;;);'; echo $?"), "124\n"));
test("node's processor time is limited", async ({ sandbox }) => equal((await sandbox.exec("node -e 'for (;;);'", { limits: { cpuSeconds: 1 } })).limit, "cpu_seconds"));
test("node that waits uses no processor time", async ({ sandbox }) => {
  const result = await sandbox.exec("node -e 'setTimeout(() => console.log(1), 10000)'", { limits: { cpuSeconds: 8 } });
  equal([result.stdout, result.limit], ["1\n", null]);
});
test("node's memory is limited", async ({ sandbox }) => {
  const result = await sandbox.exec("node -e 'const a = []; for (;;) a.push(new Uint8Array(1e6).fill(1))'", { limits: { memoryBytes: 64 << 20 } });
  equal([result.ok, result.limit, await out(sandbox, "echo on")], [false, "memory_bytes", "on\n"]);
});
test("node ends with its reader", async ({ sandbox }) => equal(await out(sandbox, "node -e 'for (;;) console.log(\"y\")' | head -n 2"), "y\ny\n"));
test("node has digests, encodings and URLs", async ({ sandbox }) => {
  await sandbox.files.write("/tmp/js/crypto.js", `
    const crypto = require("crypto");
    for (const name of ["md5", "sha1", "sha256", "sha512"]) console.log(crypto.createHash(name).update("abc").digest("hex").slice(0, 16));
    console.log(crypto.createHmac("sha256", "k").update("v").digest("base64"), crypto.randomUUID().length, crypto.randomBytes(5).length);
    console.log(Buffer.from("héllo").toString("base64"), Buffer.from("6869", "hex").toString(), Buffer.from("aGk", "base64url").toString(), Buffer.from("abcabc").indexOf("c", 3));
    const url = new URL("../x?a=1#b", "https://me:pw@example.com:8443/y/z");
    url.searchParams.append("c", "d e");
    console.log(url.href, url.port, url.username);
    try { new URL("nothing"); } catch (error) { console.log(error.code); }
  `);
  equal((await out(sandbox, "node /tmp/js/crypto.js")).split("\n"), [
    "900150983cd24fb0", "a9993e364706816a", "ba7816bf8f01cfea", "ddaf35a193617aba", "xdS+GZLVDTtB+aISkvxnoooUhvxkoFF9N/mvhH4HMt4= 36 5", "aMOpbGxv hi hi 5",
    "https://me:pw@example.com:8443/x?a=1&c=d+e#b 8443 me", "ERR_INVALID_URL", "",
  ]);
});
test("node reads a program from its input", async ({ sandbox }) => equal(await out(sandbox, "echo 'console.log(1 + 1)' | node -"), "2\n"));
test("node has an interpreter line", async ({ sandbox }) => {
  await sandbox.files.write("/tmp/js/tool", "#!/usr/bin/env node\nconsole.log('run by its line');\n", { mode: 0o755 });
  equal(await out(sandbox, "/tmp/js/tool"), "run by its line\n");
});
test("many programs run side by side", async ({ sandbox }) => {
  const results = await Promise.all([1, 2, 3].map((n) => out(sandbox, `node -p '${n} * 2'`)));
  equal(results, ["2\n", "4\n", "6\n"]);
});

// sandbox.js

test("js keeps its state", async ({ sandbox }) => {
  await sandbox.js.run("let x = 41; console.log('said'); console.error('warned')");
  const result = await sandbox.js.run("console.log('again'); x + 1");
  equal([result.ok, result.value, result.stdout, result.stderr], [true, 42, "again\n", ""]);
});
test("js waits for promises", async ({ sandbox }) => equal((await sandbox.js.run("await new Promise((resolve) => setTimeout(() => resolve(7), 50))")).value, 7));
test("js values cross as plain data", async ({ sandbox }) => {
  const { value } = await sandbox.js.run("({ a: [1, 2.5, null, true], b: new Uint8Array([120]), c: 'é', d: new Date(0), m: new Map([[1, 2]]) })");
  equal([value.a, value.b, value.c, value.d.getTime(), [...value.m]], [[1, 2.5, null, true], new Uint8Array([120]), "é", 0, [[1, 2]]]);
  equal((await sandbox.js.run("2n ** 70n")).value === 2n ** 70n, true);
});
test("what is no plain data is named", async ({ sandbox }) => {
  const { ok, value, unsent } = await sandbox.js.run("() => 1");
  equal([ok, value, unsent.default.includes("function")], [true, null, true]);
});
test("js calls functions of the owner's", async ({ sandbox }) => {
  equal((await sandbox.js.run("await twice(21) + half", { globals: { twice: (n) => 2 * n, half: 0.5 } })).value, 42.5);
  const failed = await sandbox.js.run("await twice(1)", { globals: { twice: () => { throw new RangeError("not today"); } } });
  equal([failed.ok, failed.error.name, failed.error.message], [false, "RangeError", "not today"]);
});
test("tools are functions in js", async ({ sandbox }) => equal((await sandbox.js.run("await add(1, 2) + (await greet({ name: 'you' }))")).value, "3hello you"));
test("an error of js is a result", async ({ sandbox }) => {
  const { ok, error } = await sandbox.js.run("null.x");
  equal([ok, error.code, error.name, error.stack.includes("run.js:1")], [false, "RUNTIME_ERROR", "TypeError", true]);
  equal((await sandbox.js.run("let let")).error.code, "SYNTAX_ERROR");
});
test("js takes TypeScript", async ({ sandbox }) => equal((await sandbox.js.run("const n: number = 4; n")).value, 4));
test("js survives a limit of processor time", async ({ sandbox }) => {
  await sandbox.js.run("var kept = 1");
  const { error } = await sandbox.js.run("for (;;);", { cpuMs: 300 });
  equal([error.code, (await sandbox.js.run("kept")).value], ["CPU_LIMIT", 1]);
});
test("js that waits too long is ended", async ({ sandbox }) => {
  equal((await sandbox.js.run("await new Promise((r) => setTimeout(r, 60000))", { wallMs: 500 })).error.code, "WALL_LIMIT");
  equal((await sandbox.js.run("await new Promise(() => {})")).error.name, "unsettled");
});
test("js has a limit of memory", async ({ sandbox }) => {
  equal((await sandbox.js.run("let a = []; for (;;) a.push(new Uint8Array(1e6).fill(1))", { memoryMb: 40 })).error.code, "MEMORY_LIMIT");
  equal((await sandbox.js.run("typeof a")).value, "undefined");
});
test("js has a limit of output", async ({ create }) => {
  const sandbox = await create({ limits: { outputBytes: 100_000 } });
  const { error, stdout } = await sandbox.js.run("for (;;) console.log('y'.repeat(1000))");
  equal([error.code, stdout.length <= 100_000], ["OUTPUT_LIMIT", true]);
  sandbox.close();
});
test("js has a limit of calls", async ({ sandbox }) => equal((await sandbox.js.run("for (;;) await add(1, 1)", { maxBridgeCalls: 20 })).error.code, "BRIDGE_LIMIT"));
test("js nested too deep is ended", async ({ sandbox }) => {
  equal((await sandbox.js.run("const f = () => f(); f()")).error.code, "CRASHED");
  equal((await sandbox.js.run("1")).value, 1);
});
test("js forgets when it is reset", async ({ sandbox }) => {
  await sandbox.js.run("var forgotten = 1");
  sandbox.js.reset();
  equal((await sandbox.js.run("typeof forgotten")).value, "undefined");
});
test("js hears what is said as it comes", async ({ sandbox }) => {
  const heard = [];
  await sandbox.js.run("console.log(1); await new Promise((r) => setTimeout(r, 100)); console.log(2)", { onStdout: (data) => heard.push(new TextDecoder().decode(data)) });
  equal(heard, ["1\n", "2\n"]);
});
test("js refuses options it does not know", async ({ sandbox }) => raises("TypeError", async () => sandbox.js.run("1", { timeout: 3 })));
test("js has a network only if it is granted", async ({ create, sandbox }) => {
  const refused = await sandbox.js.run("await fetch('http://a.test/')");
  equal([refused.ok, refused.error.message], [false, "fetch failed"]);
  const other = await create({ network: { policy: ({ url }) => (url.includes("a.test") ? new Response("made up", { status: 201, headers: { "x-a": "b" } }) : false) } });
  equal((await other.js.run("const r = await fetch('http://a.test/'); [r.status, r.headers.get('x-a'), await r.text()]")).value, [201, "b", "made up"]);
  equal((await other.js.run("await fetch('http://b.test/')")).ok, false);
  other.close();
});
test("a closed sandbox has no js", async ({ create }) => {
  const sandbox = await create();
  const running = raises("SandboxClosed", () => sandbox.js.run("await new Promise((r) => setTimeout(r, 60000))"));
  await new Promise((resolve) => setTimeout(resolve, 100));
  sandbox.close();
  await running;
  await raises("SandboxClosed", () => sandbox.js.run("1"));
});
