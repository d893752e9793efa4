// The demonstration page's sessions: kept in this browser, in a link, in a file.
import { $, formatSize, make, offerDownload } from "./dom.mjs";
import { collect, makeFragment, parseFragment } from "./link.mjs";
import { snapshots } from "./snapshots.mjs";

const SHOWN = 200;

/** @param app {sandbox() => Sandbox, attempt(body), say(text), begin(options)} */
export function setUpSessions(app) {
  const done = (text) => {
    $("sessions").close();
    app.say(text);
  };
  const attempt = (body) => app.attempt(body).then((ok) => ok || $("sessions").close()); // what went wrong is said behind it
  $("session").onclick = () => attempt(async () => {
    $("link").value = "";
    await list(app, attempt);
    $("sessions").showModal();
  });
  $("saving").onsubmit = (event) => {
    event.preventDefault();
    attempt(async () => {
      await snapshots.save($("saved-name").value.trim(), app.sandbox());
      $("saved-name").value = "";
      await list(app, attempt);
    });
  };
  $("share").onclick = () => attempt(async () => {
    const fragment = await makeFragment(await collect(app.sandbox().files));
    $("link").value = `${location.origin}${location.pathname}${fragment}`;
    $("link").select();
    await navigator.clipboard?.writeText($("link").value).catch(() => {}); // not allowed: it is selected
  });
  $("save").onclick = () => attempt(async () => {
    offerDownload(await app.sandbox().snapshot(), "session.belljar");
    done("");
  });
  $("open").onclick = () => $("opened").click();
  $("opened").onchange = () => attempt(async () => {
    const [file] = $("opened").files;
    $("opened").value = "";
    $("sessions").close();
    await app.begin({ snapshot: new Uint8Array(await file.arrayBuffer()) });
  });
}

async function list(app, attempt) {
  const kept = navigator.storage?.getDirectory ? await snapshots.list() : [];
  $("saved").replaceChildren(...kept.map(({ name, size, modified }) => {
    const open = make("button", { type: "button", textContent: "Open" });
    open.onclick = () => attempt(async () => {
      $("sessions").close();
      await app.begin({ snapshot: await snapshots.load(name) });
    });
    const remove = make("button", { type: "button", textContent: "Remove" });
    remove.onclick = () => attempt(async () => {
      await snapshots.remove(name);
      await list(app, attempt);
    });
    const when = make("span", { className: "size", textContent: `${formatSize(size)}, ${modified.toLocaleString()}` });
    return make("li", {}, make("span", { className: "name", textContent: name }), when, open, remove);
  }));
}

/** The files of this page's link, if it has some and the user wants them: {path: [bytes, mode]}, else null. */
export async function acceptLink() {
  const found = await parseFragment(location.hash);
  if (location.hash) history.replaceState(null, "", location.pathname); // a reload does not ask again
  if (found === null) return null;
  $("offered").replaceChildren(...found.slice(0, SHOWN).map(([path, , data]) => make(
    "li", {}, make("span", { className: "name", textContent: path }), make("span", { className: "size", textContent: formatSize(data.length) }),
  )));
  if (found.length > SHOWN) $("offered").append(make("li", { textContent: `and ${found.length - SHOWN} more` }));
  $("offered-size").textContent = `${found.length} file${found.length === 1 ? "" : "s"}, ${formatSize(found.reduce((sum, [, , data]) => sum + data.length, 0))}`;
  const dialog = $("offer");
  dialog.returnValue = "no";
  dialog.showModal();
  await new Promise((resolve) => dialog.addEventListener("close", resolve, { once: true }));
  return dialog.returnValue === "yes" ? Object.fromEntries(found.map(([path, mode, data]) => [path, [data, mode]])) : null;
}
