// One Node peer in a process of its own: `node driver.mjs PEER MODULES`. The requests are those of driver.py.
import readline from "node:readline";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [peerName, modules] = process.argv.slice(2);
const require = createRequire(`${modules}/`);
const load = async (name) => import(pathToFileURL(entry(name)).href);

function entry(name) {
  try {
    return require.resolve(name);
  } catch {
    const folder = `${modules}/node_modules/${name}`;
    const { exports, module, main } = require(`${folder}/package.json`);
    const root = exports?.["."] ?? exports;
    const pick = (value) => (typeof value === "string" ? value : pick(value.import ?? value.node ?? value.default));
    return `${folder}/${root ? pick(root) : (module ?? main)}`;
  }
}

const peers = {
  "just-bash (npm)": class {
    async new() {
      const { Bash } = await load("just-bash");
      const many = 10_000_000;
      this.bash = new Bash({
        python: true,
        executionLimits: { maxCommandCount: many, maxLoopIterations: many, maxAwkIterations: many, maxSedIterations: many },
      });
    }
    async file(path, text) {
      await this.bash.fs.writeFile(path, text);
    }
    async run(script) {
      const { stdout, exitCode } = await this.bash.exec(script);
      return [stdout, exitCode];
    }
  },
  "Agent OS": class {
    async new() {
      const { AgentOs } = await load("@rivet-dev/agent-os-core");
      const { default: common } = await load("@rivet-dev/agent-os-common");
      if (this.vm) await this.vm.dispose();
      this.vm = await AgentOs.create({ software: [common] });
    }
    async file(path, text) {
      await this.vm.writeFile(path, text);
    }
    async run(script) {
      const { stdout, exitCode } = await this.vm.exec(script);
      return [stdout, exitCode];
    }
  },
};

const write = process.stdout.write.bind(process.stdout);
process.stdout.write = process.stderr.write.bind(process.stderr); // what a peer prints is no answer
const peer = new peers[peerName]();
for await (const line of readline.createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  const began = performance.now();
  let reply;
  try {
    let [out, code] = ["", 0];
    if (request.op === "new") {
      await peer.new();
      [out, code] = await peer.run("echo hi");
    } else if (request.op === "file") await peer.file(request.path, request.text);
    else [out, code] = await peer.run(request.script);
    reply = { ms: performance.now() - began, out, code };
  } catch (error) {
    reply = { error: `${error?.name}: ${error?.message}`.slice(0, 300) };
  }
  write(`${JSON.stringify(reply)}\n`);
}
process.exit(0);
