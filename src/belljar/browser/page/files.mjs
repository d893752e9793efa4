// A sandbox's files, from outside.
import { FileError } from "./errors.mjs";
import { toBytes } from "./wire.mjs";

const READ = 4 << 20; // bytes of a file in one message
const PAGE = 10_000; // entries of a directory in one answer
const KINDS = new Map([[0o040000, "directory"], [0o100000, "file"], [0o120000, "symlink"], [0o010000, "fifo"], [0o140000, "socket"]]);
const decoder = new TextDecoder();

/** Relative paths start at the sandbox's working directory; missing parents are made. Errors are FileError. */
export class Files {
  #call;

  constructor(call) {
    this.#call = call;
  }

  async read(path) {
    return decoder.decode(await this.readBytes(path));
  }

  async readBytes(path) {
    const parts = [];
    let size = 0;
    for (;;) {
      const [data, end] = await this.#call("read", toBytes(path, "path"), size, READ);
      parts.push(data);
      size += data.length;
      if (end) break;
    }
    return concat(parts);
  }

  async write(path, data, { mode = null, append = false } = {}) {
    const bytes = toBytes(data);
    for (let at = 0; at === 0 || at < bytes.length; at += READ) {
      await this.#call("write", toBytes(path, "path"), bytes.subarray(at, at + READ), mode, append || at > 0, true);
    }
  }

  /** Write [[path, data], ...]; one that fails does not stop the others. */
  async writeMany(files) {
    const results = [];
    for (const [path, data] of files) {
      try {
        await this.write(path, data);
        results.push({ path, error: null });
      } catch (error) {
        if (!(error instanceof FileError)) throw error;
        results.push({ path, error });
      }
    }
    return results;
  }

  async list(path = ".") {
    const entries = [];
    let after = new Uint8Array();
    for (;;) {
      const page = await this.#call("list", toBytes(path, "path"), after);
      for (const [name, ...fields] of page) entries.push(entry(decoder.decode(name), fields));
      if (page.length < PAGE) return entries;
      after = page.at(-1)[0];
    }
  }

  async stat(path, { follow = true } = {}) {
    return entry(path, await this.#call("stat", toBytes(path, "path"), follow));
  }

  async exists(path) {
    try {
      await this.stat(path);
      return true;
    } catch (error) {
      if (error instanceof FileError && ["ENOENT", "ENOTDIR"].includes(error.code)) return false;
      throw error;
    }
  }

  async mkdir(path, { parents = false } = {}) {
    await this.#call("mkdir", toBytes(path, "path"), parents);
  }

  async symlink(target, path) {
    await this.#call("symlink", toBytes(target, "target"), toBytes(path, "path"));
  }

  async readlink(path) {
    return decoder.decode(await this.#call("readlink", toBytes(path, "path")));
  }

  async remove(path, { recursive = false } = {}) {
    await this.#call("remove", toBytes(path, "path"), recursive);
  }

  async rename(old, path) {
    await this.#call("rename", toBytes(old, "path"), toBytes(path, "path"));
  }

  async chmod(path, mode) {
    await this.#call("chmod", toBytes(path, "path"), mode);
  }
}

function entry(name, [mode, size, mtime]) {
  return { name, kind: KINDS.get(mode & 0o170000) ?? "other", mode: mode & 0o7777, size, mtime: new Date(Number(mtime) / 1e6) };
}

export function concat(parts) {
  if (parts.length === 1) return parts[0];
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
