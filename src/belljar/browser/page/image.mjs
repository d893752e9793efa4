// Starts QuickJS with Node's library once, and writes its memory down: node image.mjs DIRECTORY. A page's engines go on from there.
import { readFileSync, writeFileSync } from "node:fs";
import { Guest } from "./engine_js.mjs";
import { limitMemory } from "./engine_wasm_memory.mjs";

const PAGES = 16384; // of 64 KB: whatever a run may have, an engine takes no more than a gigabyte
const [directory] = process.argv.slice(2);
const read = (name) => readFileSync(`${directory}/${name}`);
writeFileSync(`${directory}/quickjs.wasm`, limitMemory(read("quickjs.wasm"), PAGES));
const guest = new Guest(new WebAssembly.Module(read("quickjs.wasm")), read("typescript.wasm"), JSON.parse(read("library.json")), null);
const { memory, last, ...rest } = guest.image();
writeFileSync(`${directory}/memory.bin`, memory);
writeFileSync(`${directory}/memory.json`, JSON.stringify({ ...rest, last: last.map((each) => [...each]) }));
