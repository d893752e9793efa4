// Runs the battery in Node: node battery_node.mjs PAGE_DIRECTORY WORK.json. A line of JSON for each case.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { pathToFileURL } from "node:url";
import { runCases } from "./run_cases.mjs";

const [directory, work] = process.argv.slice(2);
const { Sandbox } = await import(pathToFileURL(`${directory}/node.mjs`));
const server = createServer((_request, response) => response.end("hello from the server\n"));
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const given = { ...JSON.parse(readFileSync(work)), server: `http://127.0.0.1:${server.address().port}` };
await runCases(Sandbox, given, (result) => console.log(JSON.stringify(result)), { trustPython: true });
const untrusted = await Sandbox.create();
const { exitCode, stderr } = await untrusted.exec("python3 -c 1");
if (exitCode !== 127 || !stderr.includes("trustPython")) throw new Error(`guest Python ran untrusted: ${exitCode} ${stderr}`);
const javascript = await untrusted.exec("node -p 6*7"); // has a wall of its own
if (javascript.stdout !== "42\n") throw new Error(`guest JavaScript did not run: ${javascript.stderr}`);
process.exit(0);
