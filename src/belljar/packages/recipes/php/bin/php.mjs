// The command line of PHP: its WebAssembly sees the sandbox's files through node's, and its commands are the sandbox's.
import { spawn } from "node:child_process";
import { EventEmitter } from "node:events";
import fs from "node:fs";
import { init } from "../lib/php_8_4.mjs";

const NOT_FILES = new Set(["dev", "proc"]); // PHP has its own
const words = ["php", "-d", "display_errors=stderr", ...process.argv.slice(2)];
let exitCode = 0;

const module = init("NODE", {
  noInitialRun: true,
  locateFile: (path) => path,
  nativeInternalDirPath: "/tmp",
  processId: process.pid,
  ENV: { ...process.env },
  onMessage: () => {},
  quit: (status, error) => {
    exitCode = status;
    throw error;
  },
  onAbort: (reason) => {
    console.error(`php: ${reason}`);
    process.exit(134);
  },
  spawnProcess: start,
  onRuntimeInitialized: main,
});

// Start a command. PHP takes its output to be whole when it exits, so that is told when its pipes are closed.
function start(command, args) {
  const child = spawn("/bin/sh", ["-c", [command, ...(args ?? [])].join(" ")], { stdio: ["pipe", "pipe", "pipe"] });
  const told = Object.assign(new EventEmitter(), { stdin: child.stdin, stdout: child.stdout, stderr: child.stderr, pid: child.pid });
  child.on("spawn", () => told.emit("spawn"));
  child.on("error", (error) => told.emit("error", error));
  child.on("close", (code, signal) => told.emit("exit", code ?? 255, signal));
  setImmediate(() => {
    if (child.stderr.listenerCount("data") === 0) child.stderr.pipe(process.stderr);
  });
  return told;
}

async function main() {
  const { FS } = module;
  const { node_ops: operations } = FS.filesystems.NODEFS;
  const { readdir } = operations;
  operations.readdir = (node) => [".", "..", ...readdir(node)];
  for (const name of fs.readdirSync("/").filter((entry) => !NOT_FILES.has(entry))) {
    const path = `/${name}`;
    if (!fs.statSync(path).isDirectory()) continue;
    FS.mkdirTree(path);
    FS.mount(FS.filesystems.NODEFS, { root: path }, path);
  }
  FS.chdir(process.cwd());
  for (const word of words) module.ccall("wasm_add_cli_arg", null, ["string"], [word]);
  try {
    exitCode = await module.ccall("run_cli", "number", [], [], { async: true });
  } catch (error) {
    if (error?.name !== "ExitStatus") throw error;
  }
  process.exit(exitCode);
}
