// Cases of tests/spec in a page's worker: posted {part, parts, from}, it posts what specs_run.mjs tells.
import { loadPyodide } from "/pyodide/pyodide.mjs";
import { installStacks } from "/stacks.mjs";
import { runSpecs } from "./specs_run.mjs";

const load = async (name) => new Uint8Array(await (await fetch(`/${name}`)).arrayBuffer());

self.onmessage = async ({ data: { part, parts, from } }) => {
  await runSpecs({
    loadPyodide,
    installStacks,
    indexURL: new URL("/pyodide/", self.location.href).href,
    load,
    tests: await load("tests/specs.zip"),
    part, parts, from,
    tell: (message) => self.postMessage(message),
    onFault(died) {
      self.addEventListener("error", (event) => died(event.error ?? event.message));
      self.addEventListener("unhandledrejection", (event) => died(event.reason));
    },
  });
};
