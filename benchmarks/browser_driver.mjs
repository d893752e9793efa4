// belljar in Node as benchmarks/browser.py asks it: node browser_driver.mjs PAGE; a line of JSON for each request and answer.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { Sandbox } = await import(pathToFileURL(`${process.argv[2]}/node.mjs`));
let sandbox = null;
const methods = {
  async init() {
    sandbox = await Sandbox.create({ trustPython: true });
    return {};
  },
  async writeFile({ path, contentBase64 }) {
    await sandbox.files.write(path, new Uint8Array(Buffer.from(contentBase64, "base64")));
    return {};
  },
  async run({ command }) {
    const { stdout, stderr, exitCode } = await sandbox.exec(command);
    return { stdout, stderr, exitCode };
  },
  async cell({ code }) {
    const { value, error } = await sandbox.python.run(code);
    return { stdout: `${value}\n`, stderr: error?.message ?? "", exitCode: error === null ? 0 : 1 };
  },
};
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  try {
    console.log(JSON.stringify({ id, ok: true, result: await methods[method](params) }));
  } catch (error) {
    console.log(JSON.stringify({ id, ok: false, error: String(error?.stack ?? error) }));
  }
}
