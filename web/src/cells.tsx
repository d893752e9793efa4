// Cells: Python, JavaScript and bash that keep their variables, with plots and tables.
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, post, Refused } from "./api";
import { Code } from "./code";
import { plain } from "./text";
import { attempt, Button, Icon } from "./ui";
import { readTables, type TableData } from "./tables";

type Language = "python" | "javascript" | "bash";

type Output =
  | { kind: "stdout" | "stderr" | "text"; text: string }
  | { kind: "error"; name: string; text: string }
  | { kind: "image"; mime: string; data: string }
  | { kind: "table"; table: TableData };

interface Cell {
  id: number;
  language: Language;
  code: string;
  outputs: Output[];
  count: number;
  state: "idle" | "running" | "done";
  ms: number;
}

const OUTPUTS_MAX = 1000;
const SHOWN_MAX = 200_000;
const EXAMPLES: Record<Language, string> = {
  python: "import statistics\nstatistics.mean([3, 1, 4, 1, 5])",
  javascript: "[3, 1, 4, 1, 5].toSorted()",
  bash: "uname -a; ls -l",
};

function fresh(id: number, language: Language = "python", code = ""): Cell {
  return { id, language, code, outputs: [], count: 0, state: "idle", ms: 0 };
}

function load(id: string): Cell[] {
  try {
    const kept = JSON.parse(localStorage.getItem(`cells:${id}`) ?? "[]") as { language: Language; code: string }[];
    if (kept.length > 0) return kept.map(({ language, code }, place) => fresh(place, language, String(code)));
  } catch {
    // somebody else's entry
  }
  return [fresh(0, "python", EXAMPLES.python)];
}

export function Cells({ id }: { id: string }) {
  const [cells, setCells] = useState(() => load(id));
  const running = useRef(new Map<number, AbortController>());
  useEffect(() => {
    const kept = cells.map(({ language, code }) => ({ language, code }));
    localStorage.setItem(`cells:${id}`, JSON.stringify(kept));
  }, [cells]);
  useEffect(() => () => running.current.forEach((each) => each.abort()), []);
  const change = (number: number, work: (cell: Cell) => Partial<Cell>) =>
    setCells((before) => before.map((cell) => (cell.id === number ? { ...cell, ...work(cell) } : cell)));
  const add = () => setCells((before) => [...before, fresh(Math.max(-1, ...before.map((cell) => cell.id)) + 1, before.at(-1)?.language)]);
  const run = async (cell: Cell) => {
    if (running.current.has(cell.id)) return;
    const stop = new AbortController();
    running.current.set(cell.id, stop);
    const began = performance.now();
    change(cell.id, () => ({ outputs: [], state: "running" }));
    try {
      for await (const event of execute(id, cell.language, cell.code, stop.signal)) {
        if (typeof event === "number") change(cell.id, () => ({ count: event }));
        else change(cell.id, (now) => ({ outputs: append(now.outputs, event) }));
      }
    } catch (error) {
      if (!stop.signal.aborted && !(error instanceof Refused)) throw error;
      const text = stop.signal.aborted ? "stopped" : (error as Refused).message;
      change(cell.id, (now) => ({ outputs: [...now.outputs, { kind: "error", name: "Not finished", text }] }));
    } finally {
      running.current.delete(cell.id);
      change(cell.id, () => ({ state: "done", ms: performance.now() - began }));
    }
  };
  const restart = async () => {
    const languages = new Set(cells.map((cell) => cell.language).filter((language) => language !== "bash"));
    for (const language of languages) {
      await attempt(() => post(`/sandboxes/${id}/contexts/default-${language}/restart`).catch(ignoreMissing));
    }
    setCells((before) => before.map((cell) => ({ ...cell, outputs: [], count: 0, state: "idle" })));
  };
  return (
    <div class="cells">
      {cells.map((cell, place) => (
        <CellView
          key={cell.id}
          cell={cell}
          place={place}
          onCode={(code) => change(cell.id, () => ({ code }))}
          onLanguage={(language) => change(cell.id, () => ({ language }))}
          onRun={() => void run(cell)}
          onStop={() => running.current.get(cell.id)?.abort()}
          onRemove={() => setCells((before) => (before.length > 1 ? before.filter((each) => each.id !== cell.id) : [fresh(cell.id + 1)]))}
        />
      ))}
      <div class="cells-bar">
        <Button icon="plus" onClick={add}>
          Add a cell
        </Button>
        <Button icon="play" onClick={() => void runAll(cells, run)}>
          Run all
        </Button>
        <Button icon="refresh" onClick={() => void restart()}>
          Forget the variables
        </Button>
      </div>
    </div>
  );
}

async function runAll(cells: Cell[], run: (cell: Cell) => Promise<void>) {
  for (const cell of cells) await run(cell);
}

function ignoreMissing(error: unknown) {
  if (!(error instanceof Refused && error.status === 404)) throw error;
}

interface CellViewProps {
  cell: Cell;
  place: number;
  onCode: (code: string) => void;
  onLanguage: (language: Language) => void;
  onRun: () => void;
  onStop: () => void;
  onRemove: () => void;
}

function CellView({ cell, place, onCode, onLanguage, onRun, onStop, onRemove }: CellViewProps) {
  const busy = cell.state === "running";
  return (
    <section class={`cell card ${cell.state}`} aria-label={`Cell ${place + 1}`}>
      <div class="cell-bar">
        {busy ? (
          <Button small kind="danger" icon="stop" onClick={onStop}>
            Stop
          </Button>
        ) : (
          <Button small kind="primary" icon="play" onClick={onRun}>
            Run
          </Button>
        )}
        <select aria-label="Language" value={cell.language} onChange={(event) => onLanguage(event.currentTarget.value as Language)}>
          <option value="python">Python</option>
          <option value="javascript">JavaScript</option>
          <option value="bash">Bash</option>
        </select>
        <span class="spacer" />
        {cell.state === "done" && (
          <small class="muted">
            {cell.count > 0 && `[${cell.count}] `}
            {cell.ms < 1000 ? `${Math.round(cell.ms)} ms` : `${(cell.ms / 1000).toFixed(1)} s`}
          </small>
        )}
        <Button small kind="ghost" icon="trash" label="Remove the cell" onClick={onRemove} />
      </div>
      <Code text={cell.code} language={cell.language} label={`Code of cell ${place + 1}`} onChange={onCode} onRun={onRun} />
      {cell.outputs.length > 0 && (
        <div class="outputs" role="log" aria-label={`Output of cell ${place + 1}`} tabIndex={0}>
          {cell.outputs.map((output, number) => (
            <Shown key={number} output={output} />
          ))}
        </div>
      )}
    </section>
  );
}

function Shown({ output }: { output: Output }) {
  switch (output.kind) {
    case "image":
      return <img src={`data:${output.mime};base64,${output.data}`} alt="Plot" />;
    case "table":
      return <DataTable table={output.table} />;
    case "error":
      return (
        <div class="cell-error">
          <strong>
            <Icon name="x" size={14} /> {output.name}
          </strong>
          <pre>{plain(output.text)}</pre>
        </div>
      );
    default:
      return <pre class={output.kind}>{plain(output.text)}</pre>;
  }
}

function DataTable({ table }: { table: TableData }) {
  return (
    <div class="data-table">
      <table>
        <thead>
          {table.head.map((row, place) => (
            <tr key={place}>
              {row.map((text, column) => (
                <th key={column} scope="col">
                  {text}
                </th>
              ))}
            </tr>
          ))}
        </thead>
        <tbody>
          {table.rows.map((row, place) => (
            <tr key={place}>
              {row.map((cell, column) =>
                cell.head ? (
                  <th key={column} scope="row">
                    {cell.text}
                  </th>
                ) : (
                  <td key={column}>{cell.text}</td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
      {table.cut && <p class="tree-note">only the first rows are shown</p>}
    </div>
  );
}

function append(outputs: Output[], next: Output): Output[] {
  const last = outputs.at(-1);
  if (last && (next.kind === "stdout" || next.kind === "stderr") && last.kind === next.kind) {
    return [...outputs.slice(0, -1), { ...last, text: (last.text + next.text).slice(-SHOWN_MAX) }];
  }
  return [...outputs, next].slice(-OUTPUTS_MAX);
}

/** Run code; the number of the run, then what it shows as it comes. */
async function* execute(id: string, language: Language, code: string, signal: AbortSignal): AsyncGenerator<Output | number> {
  const answer = await ask("POST", `/sandboxes/${id}/run`, { code, language }, signal);
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    held += value;
    const lines = held.split("\n");
    held = lines.pop()!;
    for (const line of lines) if (line) yield* outputs(JSON.parse(line) as Record<string, unknown>);
  }
}

function* outputs(event: Record<string, unknown>): Generator<Output | number> {
  const text = (name: string) => (typeof event[name] === "string" ? (event[name] as string) : "");
  switch (event["type"]) {
    case "number_of_executions":
      yield Number(event["execution_count"]);
      break;
    case "stdout":
    case "stderr":
      yield { kind: event["type"], text: text("text") };
      break;
    case "error":
      yield { kind: "error", name: `${text("name")}: ${text("value")}`, text: text("traceback") };
      break;
    case "result":
      yield* result(event, text);
  }
}

/** The best of the forms in which a result came. */
function* result(event: Record<string, unknown>, text: (name: string) => string): Generator<Output> {
  if (text("png")) return yield { kind: "image", mime: "image/png", data: text("png") };
  if (text("jpeg")) return yield { kind: "image", mime: "image/jpeg", data: text("jpeg") };
  if (text("svg")) return yield { kind: "image", mime: "image/svg+xml", data: encode(text("svg")) };
  const tables = text("html") ? readTables(text("html")) : [];
  for (const table of tables) yield { kind: "table", table };
  if (tables.length > 0) return;
  if (event["json"] !== undefined) return yield { kind: "text", text: JSON.stringify(event["json"], null, 2) };
  const shown = text("text") || text("markdown") || text("latex") || text("html");
  if (shown) yield { kind: "text", text: shown };
}

function encode(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}
