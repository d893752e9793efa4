// The demonstration page's agent: its settings and its conversation. See agent.mjs.
import { $, make, sendOnEnter } from "./dom.mjs";
import { Agent } from "./agent.mjs";

const KEPT = "belljar-agent";
const FIELDS = { url: "endpoint", model: "model", key: "key" };
let agent = null;
let using = "";

const settings = () => Object.fromEntries(Object.entries(FIELDS).map(([name, id]) => [name, $(id).value.trim()]));

/** @param app {sandbox() => Sandbox, attempt(body), refresh()} */
export function setUpChat(app) {
  const kept = sessionStorage.getItem(KEPT);
  if (kept !== null) {
    const values = JSON.parse(kept);
    for (const [name, id] of Object.entries(FIELDS)) $(id).value = values[name] ?? "";
    $("remember").checked = true;
    $("settings").open = false;
  }
  $("settings").onchange = keep;
  $("settings").onsubmit = (event) => event.preventDefault();
  sendOnEnter($("wish"), true);
  $("task").onsubmit = (event) => {
    event.preventDefault();
    const wish = $("wish").value.trim();
    if (wish && $("stop").hidden) app.attempt(() => converse(app, wish));
  };
}

/** Another session: the agent knows nothing of it. */
export function resetChat() {
  agent = null;
  $("talk").replaceChildren();
}

// In memory only, unless the user wants them kept; then for this tab.
function keep() {
  if ($("remember").checked) sessionStorage.setItem(KEPT, JSON.stringify(settings()));
  else sessionStorage.removeItem(KEPT);
}

async function converse(app, wish) {
  const given = settings();
  if (!given.url || !given.model) {
    $("settings").open = true;
    throw new Error("name an endpoint and a model first");
  }
  if (agent === null || using !== JSON.stringify(given)) {
    agent = new Agent(app.sandbox, given);
    using = JSON.stringify(given);
  }
  $("settings").open = false;
  $("wish").value = "";
  const stopped = new AbortController();
  $("stop").onclick = () => stopped.abort();
  $("stop").hidden = false;
  const waiting = make("p", { className: "hint", textContent: "thinking…" });
  const tell = (kind, text) => {
    waiting.before(make(kind === "answer" || kind === "task" ? "p" : "pre", { className: kind, textContent: text }));
    waiting.scrollIntoView({ block: "end" });
  };
  $("talk").append(waiting);
  tell("task", wish);
  try {
    await agent.work(wish, tell, stopped.signal);
  } catch (error) {
    tell("error", stopped.signal.aborted ? "stopped" : error instanceof TypeError ? `${given.url} can't be reached from this page (is it there, and does it allow ${location.origin} by CORS?)` : error.message);
  } finally {
    waiting.remove();
    $("stop").hidden = true;
    await app.refresh();
  }
}
