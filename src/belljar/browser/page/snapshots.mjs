// Snapshots that stay in this browser: files of the origin's private file system (OPFS).
const DIRECTORY = "belljar-snapshots";
const SUFFIX = ".belljar";
const NAME_MAX = 100;

async function directory() {
  if (!navigator.storage?.getDirectory) throw new Error("nothing keeps snapshots here: put the bytes of sandbox.snapshot() into a file");
  const root = await navigator.storage.getDirectory();
  return root.getDirectoryHandle(DIRECTORY, { create: true });
}

function fileName(name) {
  if (typeof name !== "string" || name.trim() === "" || name.length > NAME_MAX) throw new TypeError(`a name has 1 to ${NAME_MAX} characters`);
  return `${encodeURIComponent(name)}${SUFFIX}`;
}

async function handle(name) {
  try {
    return await (await directory()).getFileHandle(fileName(name));
  } catch (error) {
    if (error.name === "NotFoundError") throw new Error(`there is no snapshot ${JSON.stringify(name)}`);
    throw error;
  }
}

export const snapshots = {
  /** Keep a sandbox, or the bytes of its snapshot, under a name. What had that name is replaced, whole or not at all. */
  async save(name, what) {
    const kept = fileName(name);
    const bytes = what instanceof Uint8Array ? what : await what.snapshot(name);
    const file = await (await directory()).getFileHandle(kept, { create: true });
    const writable = await file.createWritable();
    await writable.write(bytes);
    await writable.close();
  },

  /** [{name, size, modified}], the newest first. */
  async list() {
    const found = [];
    for await (const [kept, file] of (await directory()).entries()) {
      if (!kept.endsWith(SUFFIX)) continue;
      const { size, lastModified } = await file.getFile();
      if (size > 0) found.push({ name: decodeURIComponent(kept.slice(0, -SUFFIX.length)), size, modified: new Date(lastModified) });
    }
    return found.sort((a, b) => b.modified - a.modified);
  },

  /** The bytes, for Sandbox.restore. */
  async load(name) {
    const file = await (await handle(name)).getFile();
    return new Uint8Array(await file.arrayBuffer());
  },

  async remove(name) {
    await handle(name);
    await (await directory()).removeEntry(fileName(name));
  },
};
