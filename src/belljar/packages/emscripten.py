"""The script that runs a command which Emscripten compiled: its glue in node, on files of the sandbox.

Such a module has files of its own in memory (MEMFS). Before the run the working directory, and what the arguments name,
are copied there; what the run changed, made or removed is then done to the sandbox's files. The glue is not touched.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

_RUNNER: Final = r"""'use strict';
const fs = require('fs'), path = require('path');
const BYTES_MAX = 512 * 2 ** 20, FILES_MAX = 50000;
const cwd = process.cwd(), args = process.argv.slice(2);
const roots = new Map();      // directories and files that are kept in step: path -> whether all that is below is, too
const before = new Map();     // path -> [size, mtime, mode] as the module was given it
let bytes = 0, status = 0, latest;

function fail(why) { fs.writeSync(2, `${NAME}: ${why}\n`); process.exit(126); }
function stat(place) { return fs.lstatSync(place, { throwIfNoEntry: false }); }

function findRoots() {
  for (const place of SYNC) roots.set(path.resolve(cwd, place), true);
  for (const arg of args) {
    // A file may be a whole argument, or follow an option: --out=FILE, -o/FILE.
    for (const text of new Set([arg, arg.slice(arg.indexOf('=') + 1), arg.replace(/^-+\w*?(?=[./])/, '')])) {
      if (!text || text.startsWith('-')) continue;
      const place = path.resolve(cwd, text);
      if ([...roots].some(([root, deep]) => deep && (place === root || place.startsWith(root + '/')))) continue;
      if (place === '/' || /^\/(proc|dev|mnt|net)(\/|$)/.test(place)) continue;
      if (stat(place)) roots.set(place, true);
      else if (stat(path.dirname(place))?.isDirectory()) roots.set(path.dirname(place), false);
    }
  }
}

function copyIn(FS, place, deep) {
  const about = stat(place);
  if (!about) return;
  if (before.size >= FILES_MAX) fail(`more than ${FILES_MAX} files to hand over: call it in a smaller directory`);
  if (about.isSymbolicLink()) {
    if (!deep) return;
    try { FS.symlink(fs.readlinkSync(place), place); before.set(place, null); } catch { /* it has one by that name */ }
  } else if (about.isDirectory()) {
    FS.mkdirTree(place);
    before.set(place, null);
    if (deep) for (const name of fs.readdirSync(place)) copyIn(FS, path.join(place, name), true);
  } else if (about.isFile()) {
    bytes += about.size;
    if (bytes > BYTES_MAX) fail(`more than ${BYTES_MAX >> 20} MB to hand over: call it in a smaller directory`);
    FS.writeFile(place, fs.readFileSync(place));
    FS.chmod(place, about.mode & 0o7777);
    FS.utime(place, about.mtimeMs, about.mtimeMs);
    const given = FS.stat(place);
    before.set(place, [given.size, +given.mtime, given.mode]);
  }
}

function syncIn(FS) {
  for (const [root, deep] of roots) {
    FS.mkdirTree(path.dirname(root));
    copyIn(FS, root, deep);
  }
  FS.chdir(cwd);
}

function copyOut(FS, place, deep, seen) {
  let about;
  try { about = FS.lstat(place); } catch { return; }
  const known = before.has(place);
  seen.add(place);
  if (FS.isLink(about.mode)) {
    if (!known) { fs.rmSync(place, { force: true }); fs.symlinkSync(FS.readlink(place), place); }
  } else if (FS.isDir(about.mode)) {
    if (!known) fs.mkdirSync(place, { recursive: true });
    for (const name of FS.readdir(place)) {
      if (name === '.' || name === '..') continue;
      const inner = path.join(place, name);
      // Of a directory that is not kept in step as a whole, only what is new there counts.
      if (deep || !before.has(place) || !stat(inner)) copyOut(FS, inner, true, seen);
    }
  } else if (FS.isFile(about.mode)) {
    const given = before.get(place);
    const same = given && given[0] === about.size && given[1] === +about.mtime;
    if (!same) { fs.writeFileSync(place, FS.readFile(place)); fs.utimesSync(place, about.atime, about.mtime); }
    if (!given || given[2] !== about.mode) fs.chmodSync(place, about.mode & 0o777);
  }
}

function syncOut(FS) {
  const seen = new Set();
  for (const [root, deep] of roots) copyOut(FS, root, deep, seen);
  const gone = [...before.keys()].filter((place) => !seen.has(place));
  for (const place of gone.sort().reverse()) {
    if (stat(place)?.isDirectory()) fs.rmdirSync(place); else fs.rmSync(place, { force: true });
  }
}

function output(fd) {
  let held = [];
  const flush = () => { if (held.length) fs.writeSync(fd, Buffer.from(held)); held = []; };
  const put = (byte) => {
    if (byte !== null) held.push(byte & 255);
    if (byte === null || byte === 10 || held.length > 4095) flush();
  };
  return { put, flush, line: (text) => { flush(); fs.writeSync(fd, `${text}\n`); } };
}
const out = output(1), err = output(2);

let piece = Buffer.alloc(0), at = 0;
function input() {
  if (at === piece.length) {
    const room = Buffer.alloc(65536);
    let count = 0;
    try { count = fs.readSync(0, room, 0, room.length, null); } catch (error) { if (error.code !== 'EOF') throw error; }
    piece = room.subarray(0, count); at = 0;
    if (!count) return null;
  }
  return piece[at++];
}

async function load(module, again) {
  const config = {
    noInitialRun: !again, arguments: args, thisProgram: NAME, stdin: input, stdout: out.put, stderr: err.put,
    print: out.line, printErr: err.line,
    preRun: [() => {
      if (config.ENV) Object.assign(config.ENV, process.env);
      if (again && config.FS) syncIn(config.FS);
    }],
    onExit: (code) => { status = code; },
  };
  const ready = new Promise((resolve) => { config.onRuntimeInitialized = () => resolve(config); });
  globalThis.Module = latest = config;      // where glue that is no factory looks for it
  if (again) delete require.cache[GLUE];
  const found = module ?? require(GLUE);
  const factory = typeof found === 'function' ? found : found?.default;
  if (typeof factory !== 'function') return ready;
  latest = (await factory(config)) ?? config;
  return latest;
}

async function main() {
  const module = GLUE.endsWith('.mjs') ? await import(GLUE) : null;
  findRoots();
  const state = await load(module, false);
  try {
    if (state.callMain) {
      if (state.FS) syncIn(state.FS);
      status = (await state.callMain(args)) ?? status;
    } else {
      await load(module, true);      // its main can't be called: it runs by itself when it is loaded
    }
  } catch (error) {
    if (error?.name !== 'ExitStatus') throw error;
    status = error.status;
  } finally {
    if (latest.FS && before.size) syncOut(latest.FS);
  }
}

main().then(
  () => { out.flush(); err.flush(); process.exit(status); },
  (error) => {
    out.flush(); err.flush();
    const why = typeof error === 'number' ? 'an exception that it did not catch' : error?.stack ?? error;
    fs.writeSync(2, `${NAME}: ended by ${why}\n`);
    process.exit(134);
  },
);
"""


def runner(glue: str, name: str, sync: Sequence[str]) -> str:
    """The script for one command: `glue` is the path of its JavaScript."""
    constants = {"GLUE": glue, "NAME": name, "SYNC": sync}
    strict, _, rest = _RUNNER.partition("\n")
    return "\n".join([strict, *(f"const {key} = {json.dumps(value)};" for key, value in constants.items()), rest])
