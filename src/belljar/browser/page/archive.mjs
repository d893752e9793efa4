// Archives of modules: zip files whose entries are stored as they are (build_host.py makes them so).
const END = 0x06054b50;
const END_BYTES = 22;
const ENTRY_BYTES = 46;
const LOCAL_BYTES = 30;
const FILE_MODE = 0o100644;
const decoder = new TextDecoder();

/** Put an archive's files into Pyodide's file system. They stay in the archive's own memory: nothing is copied. */
export function unpackStored(fs, data, top) {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const end = data.length - END_BYTES;
  if (end < 0 || view.getUint32(end, true) !== END) throw new Error("an archive of modules is damaged: build the page again");
  const directories = new Map(); // by path
  let at = view.getUint32(end + 16, true);
  for (let left = view.getUint16(end + 10, true); left > 0; left--) {
    const [method, size, nameBytes, extra, comment] = [[10, 16], [24, 32], [28, 16], [30, 16], [32, 16]].map(
      ([offset, bits]) => (bits === 16 ? view.getUint16(at + offset, true) : view.getUint32(at + offset, true)),
    );
    const local = view.getUint32(at + 42, true);
    const path = `${top}/${decoder.decode(data.subarray(at + ENTRY_BYTES, at + ENTRY_BYTES + nameBytes))}`;
    if (method !== 0) throw new Error(`${path} is compressed in its archive`);
    const slash = path.lastIndexOf("/");
    const parent = path.slice(0, slash);
    if (!directories.has(parent)) {
      fs.mkdirTree(parent);
      directories.set(parent, fs.lookupPath(parent).node);
    }
    const begin = local + LOCAL_BYTES + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
    // Not by writeFile, which looks up each path several times.
    const directory = directories.get(parent);
    const file = directory.node_ops.mknod(directory, path.slice(slash + 1), FILE_MODE, 0);
    file.contents = data.subarray(begin, begin + size);
    file.usedBytes = size;
    at += ENTRY_BYTES + nameBytes + extra + comment;
  }
}
