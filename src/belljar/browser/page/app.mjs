// The demonstration page: a terminal, files, cells and an agent over one sandbox.
import { FitAddon } from "./xterm/addon-fit.mjs";
import { Terminal } from "./xterm/xterm.mjs";
import { Sandbox } from "./belljar.mjs";
import { resetCells, setUpCells } from "./cells.mjs";
import { resetChat, setUpChat } from "./chat.mjs";
import { $, formatSize, make, offerDownload } from "./dom.mjs";
import { acceptLink, setUpSessions } from "./sessions.mjs";

const narrow = matchMedia("(max-width: 700px)");
const README = `Welcome to belljar: a Unix in this page, and no server behind it.

  ls -la; grep -r belljar .; seq 10 | awk '{ s += $1 } END { print s }'
  python3 -c 'import sys; print(sys.version)'
  git init project && cd project

What you do here stays here. "Session" keeps it in this browser, in a link or in a file.
`;
const EDITED = 2 << 20; // bytes of a file, at most, that the editor shows
let sandbox = null;
let where = "/workspace";
let opened = null;
let chosen = null; // to be opened: it may not have been read yet

// Views.

let view = "terminal";
function show(next) {
  view = next;
  const shown = { files: narrow.matches ? next === "files" : true };
  for (const id of ["terminal", "editor", "cells", "agent"]) shown[id] = next === id;
  for (const [id, visible] of Object.entries(shown)) $(id).hidden = !visible;
  for (const button of document.querySelectorAll("[data-view]")) button.setAttribute("aria-pressed", String(button.dataset.view === next));
  if (next === "terminal") {
    fit.fit();
    screen.focus();
  } else if (next === "cells") $("code").focus();
  else if (next === "agent") $("wish").focus();
}
for (const button of document.querySelectorAll("[data-view]")) button.onclick = () => show(button.dataset.view);
narrow.onchange = () => show(view);

function say(text, bad = false) {
  $("status").textContent = text;
  $("status").className = bad ? "bad" : "";
}

/** Run something that may fail; what went wrong is said, until the next attempt. Whether it went well. */
async function attempt(body) {
  if ($("status").className === "bad") say("");
  try {
    await body();
    return true;
  } catch (error) {
    say(error.message, true);
    return false;
  }
}

// The terminal.

const screen = new Terminal({ fontSize: 14, fontFamily: "ui-monospace, monospace", cursorBlink: true, theme: { background: "#10181a" } });
const fit = new FitAddon();
screen.loadAddon(fit);
screen.open($("terminal"));
new ResizeObserver(() => $("terminal").hidden || fit.fit()).observe($("terminal"));

async function converse() {
  const terminal = await sandbox.pty(undefined, { rows: screen.rows, cols: screen.cols, env: { PS1: "\\[\\e[36m\\]\\w\\[\\e[0m\\] $ " } });
  const typed = screen.onData((data) => terminal.write(data));
  const resized = screen.onResize(({ rows, cols }) => terminal.resize(rows, cols));
  const mine = sandbox;
  try {
    for (let reader = terminal.output.getReader(), part; !(part = await reader.read()).done;) {
      screen.write(part.value);
      refreshSoon();
    }
    await terminal.wait();
  } finally {
    typed.dispose();
    resized.dispose();
  }
  if (mine === sandbox && !sandbox.closed) {
    screen.write("\r\n\x1b[2mA new shell:\x1b[0m\r\n");
    attempt(converse);
  }
}

// Files.

let timer = null;
function refreshSoon() {
  clearTimeout(timer);
  timer = setTimeout(() => refresh().catch(() => {}), 400);
}

async function refresh() {
  if (sandbox === null || sandbox.closed) return;
  const entries = await sandbox.files.list(where);
  $("where").textContent = where;
  const up = where === "/" ? [] : [{ name: "..", kind: "directory", size: 0 }];
  $("list").replaceChildren(...[...up, ...entries].map((entry) => {
    const name = make("span", { className: "name", textContent: entry.kind === "directory" ? `${entry.name}/` : entry.name });
    const size = make("span", { className: "size", textContent: entry.kind === "file" ? formatSize(entry.size) : "" });
    const button = make("button", { className: entry.kind }, name, size);
    button.onclick = () => attempt(() => enter(entry));
    return make("li", {}, button);
  }));
}

async function enter(entry) {
  const path = entry.name === ".." ? where.replace(/\/[^/]*$/, "") || "/" : `${where === "/" ? "" : where}/${entry.name}`;
  if (entry.kind === "directory") {
    where = path;
    return refresh();
  }
  chosen = path;
  const text = entry.size > EDITED ? null : asText(await sandbox.files.readBytes(path));
  if (chosen !== path) return; // another was chosen meanwhile
  opened = path;
  $("name").textContent = path;
  $("text").value = text ?? "This is no text, or too much of it to be edited here. Download has it as it is.";
  $("text").disabled = $("keep").disabled = text === null;
  show("editor");
}

// What bytes say in UTF-8; null if they are no text: to edit them as such would change the others.
function asText(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}
$("close").onclick = () => show("terminal");
$("keep").onclick = () => attempt(async () => {
  await sandbox.files.write(opened, $("text").value);
  say(`${opened} is saved`);
  await refresh();
});
$("download").onclick = () => attempt(async () => offerDownload(await sandbox.files.readBytes(opened), opened.split("/").at(-1)));
$("upload").onclick = () => $("uploaded").click();
$("uploaded").onchange = () => attempt(async () => {
  for (const file of $("uploaded").files) await sandbox.files.write(`${where}/${file.name}`, new Uint8Array(await file.arrayBuffer()));
  $("uploaded").value = "";
  await refresh();
});

// A session, and another one.

async function begin(options) {
  say("Starting… the first visit loads about 10 MB, later ones load nothing.");
  const before = sandbox;
  sandbox = await Sandbox.create({ ...options, onEvent: (event) => event.type === "died" && say(`${event.message}. Reload the page for a new one.`, true) });
  before?.close(); // not earlier: a snapshot that is refused leaves what there is
  say("");
  screen.reset();
  if (options.files?.README === README) screen.write(`\x1b[2m${README.replaceAll("\n", "\r\n")}\x1b[0m\r\n`);
  resetCells(sandbox);
  resetChat();
  where = "/workspace";
  await refresh();
  attempt(converse);
  globalThis.sandbox = sandbox; // for whoever opens the console
}

const app = { sandbox: () => sandbox, attempt, say, refresh, begin };
setUpCells(app);
setUpChat(app);
setUpSessions(app);
show("terminal");
window.onhashchange = () => attempt(async () => {
  const files = await acceptLink();
  if (files !== null) await begin({ files });
});
attempt(async () => {
  let files = null;
  const right = await attempt(async () => { files = await acceptLink(); });
  const problem = right ? "" : $("status").textContent;
  await begin({ files: files ?? { README } });
  if (problem) say(problem, true);
  // Not earlier: then all that it keeps has been loaded, and does not compete with the start.
  await navigator.serviceWorker?.register("offline.mjs", { type: "module" }).catch(() => {});
});
