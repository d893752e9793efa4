// Functions of the owner's as commands of a sandbox.
import { toBytes } from "./wire.mjs";

const NOTHING = new Uint8Array();
const decoder = new TextDecoder();

/** `search --query bell --limit 3` and `search '{"query": "bell", "limit": 3}'` call search({...}); `add 1 2` calls add("1", "2"). */
export async function runTool(name, tool, words) {
  try {
    return [render(await tool(...toArguments(words))), NOTHING, 0];
  } catch (error) {
    return [NOTHING, toBytes(`${name}: ${error?.message ?? error}\n`), 1];
  }
}

/** A call by values: a line {"args": [...], "kwargs": {...}} in, {"value": ...} or {"error": ...} out. */
export async function callTool(tool, line) {
  let answer;
  try {
    const { args = [], kwargs = {} } = JSON.parse(decoder.decode(line));
    const value = await tool(...args, ...(Object.keys(kwargs).length ? [kwargs] : []));
    answer = JSON.stringify({ value: value ?? null });
  } catch (error) {
    answer = JSON.stringify({ error: { name: error?.name ?? "Error", message: String(error?.message ?? error) } });
  }
  return toBytes(answer);
}

function toArguments(words) {
  if (words.length === 1 && words[0].trimStart().startsWith("{")) return [JSON.parse(words[0])];
  const positional = [];
  const named = Object.create(null);
  for (let i = 0; i < words.length; i++) {
    const option = /^--([A-Za-z][\w-]*)(?:=([\s\S]*))?$/.exec(words[i]);
    if (words[i] === "--") {
      positional.push(...words.slice(i + 1));
      break;
    }
    if (!option) positional.push(words[i]);
    else if (option[2] !== undefined) named[option[1]] = option[2];
    else if (i + 1 < words.length) named[option[1]] = words[++i];
    else throw new Error(`--${option[1]} needs a value`);
  }
  return Object.keys(named).length ? [...positional, { ...named }] : positional;
}

function render(value) {
  if (value === undefined || value === null) return NOTHING;
  if (value instanceof Uint8Array) return value;
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return toBytes(text.endsWith("\n") ? text : `${text}\n`);
}
