// The demonstration page's cells: Python and JavaScript, each with a state that stays.
import { $, make, sendOnEnter } from "./dom.mjs";

const LANGUAGES = { python: "Python", js: "JavaScript" };

/** @param app {sandbox() => Sandbox, attempt(body), refresh()} */
export function setUpCells(app) {
  sendOnEnter($("code"));
  $("cell").onsubmit = (event) => {
    event.preventDefault();
    const code = $("code").value;
    if (!code.trim()) return;
    $("code").value = "";
    app.attempt(() => run(app, $("language").value, code));
  };
}

/** Offer the languages that a new sandbox has, and forget what earlier cells said. */
export function resetCells(sandbox) {
  for (const option of $("language").options) option.disabled = sandbox[option.value] === undefined;
  if ($("language").selectedOptions[0]?.disabled) $("language").value = "python";
  for (const box of document.querySelectorAll(".run")) box.remove();
}

async function run(app, language, code) {
  const box = make("div", { className: "run" });
  const line = (text, kind) => box.append(make("pre", { className: kind, textContent: text }));
  box.append(make("span", { className: "tag", textContent: LANGUAGES[language] }));
  line(code, "code");
  box.append(make("p", { className: "hint", textContent: "running…" }));
  $("runs").append(box);
  box.scrollIntoView({ block: "end" });
  let result;
  try {
    result = await app.sandbox()[language].run(code);
  } finally {
    box.lastChild.remove();
  }
  for (const [kind, text] of [["", result.stdout], ["error", result.stderr], ["error", result.error?.stack || result.error?.message]]) if (text) line(text, kind);
  for (const { mime, data } of result.outputs ?? []) {
    if (mime === "image/png") box.append(make("img", { alt: "a figure", src: URL.createObjectURL(new Blob([data], { type: mime })) }));
    else if (mime === "text/plain") line(data, "");
  }
  if (result.value !== null && result.value !== undefined) line(render(result.value), "value");
  box.scrollIntoView({ block: "end" });
  await app.refresh();
}

function render(value) {
  const plain = (_, each) => (typeof each === "bigint" ? `${each}` : each instanceof Map ? Object.fromEntries(each) : each);
  const short = JSON.stringify(value, plain) ?? String(value);
  return short.length <= 100 ? short : JSON.stringify(value, plain, 2);
}
