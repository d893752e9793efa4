// Runs cases of tests/spec inside Pyodide; the same in Node (specs.mjs) and in a page's worker (specs_worker.mjs).

/**
 * Tells an object for each case that failed, {case, wrong}, then {passed, failed}; or, if the runtime broke,
 * {died, number, error, passed} as the last one.
 *
 * @param from cases of this part that are left out, because an earlier run has had them
 */
export async function runSpecs({ loadPyodide, installStacks, indexURL, load, tests, part, parts, from, tell, onFault }) {
  let done;
  const finished = new Promise((resolve) => { done = resolve; });
  let at = { name: "", number: 0, passed: 0 };
  let over = false;
  const end = (last) => {
    if (over) return;
    over = true;
    tell(last);
    done();
  };
  const died = (error) => end({ died: at.name, number: at.number, passed: at.passed, error: String(error?.stack ?? error).slice(-600) });
  onFault(died);
  const py = await loadPyodide({ indexURL, stdLibURL: `${indexURL}library.zip` });
  const turn = new MessageChannel();
  let turned = null;
  turn.port1.onmessage = () => turned?.();
  installStacks(py, (ms) => new Promise((resolve) => {
    if (ms === 0) {
      turned = resolve;
      turn.port2.postMessage(0);
    } else if (ms !== null) setTimeout(resolve, ms);
  }), died);
  py.registerJsModule("_page", {
    post() {},
    post_net() {},
    begin(name, number, passed) { at = { name, number, passed }; },
    tell: (line) => tell(JSON.parse(line)),
    finish: (line) => end(JSON.parse(line)),
  });
  py.FS.mkdirTree("/lib/belljar");
  const archives = [await load("belljar.zip"), tests];
  for (const archive of archives) py.unpackArchive(archive, "zip", { extractDir: "/lib/belljar" });
  py.runPython(`
import sys
sys.path.insert(0, "/lib/belljar")
from tests.browser import specs_inside
specs_inside.start(${part}, ${parts}, ${from})
`);
  await finished;
}
