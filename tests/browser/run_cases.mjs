import { cases } from "./battery.mjs";
import "./battery_api.mjs";
import "./battery_js.mjs";
import "./battery_wasi.mjs";

const SECONDS = 240; // for one case, on a machine that has much else to do

/** Run the cases of these names; tell each result. */
export async function runCases(Sandbox, { server, names, programs }, tell, always = {}) {
  const create = (options = {}) => Sandbox.create({ ...always, ...options });
  const sandbox = await create({ tools: {
    add: (a, b) => Number(a) + Number(b),
    greet: ({ name }) => `hello ${name}`,
    fail: (when) => { throw new Error(`it is ${when}`); },
    data: () => ({ a: [1, 2] }),
    later: async (word) => `${word}, after a while`,
    raw: () => new Uint8Array([0, 255, 10]),
  } });
  for (const [name, data] of Object.entries(programs)) {
    await sandbox.files.write(`/usr/local/bin/${name}`, Uint8Array.from(atob(data), (c) => c.charCodeAt(0)), { mode: 0o755 });
  }
  for (const { name, body } of cases) {
    if (!names.includes(name)) continue;
    const began = performance.now();
    let timer;
    const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`took over ${SECONDS} s`)), SECONDS * 1000); });
    let error = null;
    try {
      await Promise.race([body({ create, sandbox, server, programs }), late]);
    } catch (caught) {
      error = String(caught?.stack ?? caught);
    }
    clearTimeout(timer);
    tell({ name, error, ms: Math.round(performance.now() - began) });
  }
  sandbox.close();
}
