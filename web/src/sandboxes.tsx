// All sandboxes of the tenant: a live table.
import { useRef, useState } from "preact/hooks";
import { ask, get, post, remove, type Image, type Sample, type Sandbox, type Session, type Snapshot } from "./api";
import { Spark } from "./chart";
import { go, useLive, useNow, useShortcut } from "./hooks";
import { ago, bytes, duration, short, title } from "./text";
import { Act, attempt, Button, Columns, Confirm, Dialog, Empty, Icon, Loading, Meter, Problem, Segments, State, useReadOnly } from "./ui";

type Filter = "all" | "running" | "paused";

export function Sandboxes({ session }: { session: Session }) {
  const live = useLive("sandboxes", (signal) => get<{ sandboxes: Sandbox[] }>("/sandboxes", signal), 2000);
  const [text, setText] = useState("");
  const [state, setState] = useState<Filter>("all");
  const [creating, setCreating] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  const load = useLoad(live.value?.sandboxes ?? []);
  useShortcut("/", () => field.current?.focus());
  const reads = useReadOnly();
  useShortcut("n", () => setCreating(!reads));
  const all = live.value?.sandboxes;
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = (all ?? []).filter((each) => {
    const about = [each.id, each.template, each.from, ...Object.entries(each.metadata).map(([k, v]) => `${k}=${v}`)].join(" ").toLowerCase();
    const matches = state === "all" || (state === "running") === (each.state === "running");
    return matches && words.every((word) => about.includes(word));
  });
  const running = (all ?? []).filter((each) => each.state === "running");
  const memory = running.reduce((sum, each) => sum + (each.sample?.memory ?? 0), 0);
  const cpu = running.reduce((sum, each) => sum + (load.get(each.id)?.at(-1) ?? 0), 0);
  return (
    <div class="page">
      <header class="page-head">
        <h1>Sandboxes</h1>
        <Act kind="primary" icon="plus" onClick={() => setCreating(true)}>
          New sandbox
        </Act>
      </header>
      <dl class="facts">
        <Fact name="Running" value={String(running.length)} note={`of ${session.quota.sandboxes}`} />
        <Fact name="Paused" value={String((all?.length ?? 0) - running.length)} note={session.stored ? "kept in the store" : "no store"} />
        <Fact name="Processor" value={`${cpu.toFixed(cpu < 10 ? 1 : 0)} %`} note="of one core" />
        <Fact name="Memory" value={bytes(memory)} note="in use" />
      </dl>
      <div class="toolbar">
        <label class="search">
          <Icon name="search" size={16} />
          <input
            ref={field}
            type="search"
            placeholder="Filter by name, id, image, metadata"
            aria-label="Filter sandboxes"
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
          <kbd aria-hidden="true">/</kbd>
        </label>
        <Segments
          label="State"
          value={state}
          options={[
            ["all", "All"],
            ["running", "Running"],
            ["paused", "Paused"],
          ]}
          onChange={setState}
        />
      </div>
      <Problem error={live.error} />
      {!all ? (
        <Loading />
      ) : all.length === 0 ? (
        <Empty icon="box" title="No sandbox yet">
          <p>{reads ? "One that a client makes shows up by itself." : "Make one here, or with a client: it shows up by itself."}</p>
          <Act kind="primary" icon="plus" onClick={() => setCreating(true)}>
            New sandbox
          </Act>
        </Empty>
      ) : shown.length === 0 ? (
        <Empty icon="search" title="Nothing matches the filter" />
      ) : (
        <Table sandboxes={shown} load={load} limit={session.limits.memory} refresh={live.refresh} />
      )}
      {creating && <Create session={session} onClose={() => setCreating(false)} />}
    </div>
  );
}

export function Fact({ name, value, note }: { name: string; value: string; note: string }) {
  return (
    <div class="card">
      <dt>{name}</dt>
      <dd>
        <strong>{value}</strong> <small>{note}</small>
      </dd>
    </div>
  );
}

/** Percent of a processor by sandbox, the last twenty measurements. */
function useLoad(sandboxes: Sandbox[]): Map<string, number[]> {
  const seen = useRef(new Map<string, { sample: Sample; load: number[] }>());
  for (const { id, sample } of sandboxes) {
    const before = seen.current.get(id);
    if (!sample || before?.sample.at === sample.at) continue;
    const time = before ? sample.at - before.sample.at : sample.uptime;
    const used = Math.max(0, sample.cpu - (before?.sample.cpu ?? 0));
    const now = time > 0 ? (100 * used) / time : 0;
    seen.current.set(id, { sample, load: [...(before?.load ?? []), now].slice(-20) });
  }
  return new Map([...seen.current].map(([id, each]) => [id, each.load]));
}

interface TableProps {
  sandboxes: Sandbox[];
  load: Map<string, number[]>;
  limit: number;
  refresh: () => Promise<void>;
}

function Table({ sandboxes, load, limit, refresh }: TableProps) {
  const now = useNow();
  const [killing, setKilling] = useState<Sandbox>();
  const act = async (work: () => Promise<unknown>, done: string) => {
    await attempt(work, done);
    await refresh();
  };
  return (
    <div class="card table-card">
      <table class="rows">
        <Columns names={["Sandbox", "State", "Image", "Processor", "Memory", "Made", "Ends"]} actions />
        <tbody>
          {sandboxes.map((each) => {
            const values = load.get(each.id) ?? [];
            const runs = each.state === "running";
            return (
              <tr key={each.id}>
                <td class="main-cell">
                  <a href={`#/sandboxes/${each.id}/terminal`}>{title(each)}</a>
                  <code>{each.id}</code>
                </td>
                <td>
                  <State state={each.state} />
                </td>
                <td data-label="Image">{short(each.from)}</td>
                <td data-label="Processor" class="number">
                  {runs && (
                    <span class="with-spark">
                      <Spark values={values} label="processor over time" />
                      {(values.at(-1) ?? 0).toFixed(1)} %
                    </span>
                  )}
                </td>
                <td data-label="Memory" class="number">
                  {runs && each.sample && (
                    <span class="with-meter">
                      {bytes(each.sample.memory)}
                      <Meter part={each.sample.memory} whole={limit} label="share of the memory limit" />
                    </span>
                  )}
                </td>
                <td data-label="Made">{ago(each.created, now)}</td>
                <td data-label="Ends">{runs ? `${each.onTimeout} in ${duration(each.endAt - now)}` : "–"}</td>
                <td class="actions">
                  {runs ? (
                    <Act small icon="pause" label={`Pause ${title(each)}`} onClick={() => void act(() => post(`/sandboxes/${each.id}/pause`), "Paused")} />
                  ) : (
                    <Act small icon="play" label={`Resume ${title(each)}`} onClick={() => void act(() => post(`/sandboxes/${each.id}/resume`, { timeout: 3600 }), "Runs again")} />
                  )}
                  <Act small icon="trash" label={`Kill ${title(each)}`} onClick={() => setKilling(each)} />
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {killing && (
        <Confirm
          title={`Kill ${title(killing)}?`}
          text="Its processes end and its files are gone. Snapshots that were made of it stay."
          action="Kill"
          onConfirm={() => act(() => remove(`/sandboxes/${killing.id}`), "Killed")}
          onClose={() => setKilling(undefined)}
        />
      )}
    </div>
  );
}

const TIMES = [
  [300, "5 minutes"],
  [3600, "1 hour"],
  [4 * 3600, "4 hours"],
  [86400, "1 day"],
] as const;

/** Make a sandbox, from an image or a snapshot, and go to it. */
export function Create({ session, template, onClose }: { session: Session; template?: string; onClose: () => void }) {
  const images = useLive("images", (signal) => get<Image[]>("/images", signal));
  const kept = useLive("kept", (signal) => get<{ snapshots: Snapshot[] }>("/snapshots", signal));
  const [name, setName] = useState("");
  const [chosen, setChosen] = useState(template ?? "base");
  const [time, setTime] = useState(3600);
  const [network, setNetwork] = useState(true);
  const [variables, setVariables] = useState("");
  const [busy, setBusy] = useState(false);
  const create = async () => {
    setBusy(true);
    const envVars = Object.fromEntries(
      variables
        .split("\n")
        .filter((line) => line.includes("="))
        .map((line) => [line.slice(0, line.indexOf("=")).trim(), line.slice(line.indexOf("=") + 1)]),
    );
    const wish = {
      templateID: chosen,
      timeout: time,
      envVars,
      metadata: name.trim() ? { name: name.trim() } : {},
      ...(session.granted.length > 0 && !network ? { allow_internet_access: false } : {}),
    };
    const made = await attempt(async () => {
      const answer = (await (await ask("POST", "/sandboxes", wish)).json()) as { sandboxID: string };
      onClose();
      go("sandboxes", answer.sandboxID, "terminal");
    });
    if (!made) setBusy(false);
  };
  return (
    <Dialog
      title="New sandbox"
      onClose={onClose}
      onSubmit={() => void create()}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" disabled={busy}>
            {busy ? "Starting…" : "Create"}
          </Button>
        </>
      }
    >
      <label>
        Name
        <input value={name} maxLength={100} placeholder="optional" onInput={(event) => setName(event.currentTarget.value)} />
      </label>
      <label>
        Image or snapshot
        <select value={chosen} onChange={(event) => setChosen(event.currentTarget.value)}>
          <optgroup label="Images">
            {(images.value ?? [{ name: "base" } as Image]).map((image) => (
              <option key={image.name} value={image.name}>
                {image.name}
              </option>
            ))}
          </optgroup>
          {kept.value && kept.value.snapshots.length > 0 && (
            <optgroup label="Snapshots">
              {kept.value.snapshots.toReversed().map((row) => (
                <option key={row.id} value={row.id}>
                  {row.name ?? row.id}
                </option>
              ))}
            </optgroup>
          )}
        </select>
      </label>
      <label>
        {session.stored ? "Pause after" : "End after"}
        <select value={time} onChange={(event) => setTime(Number(event.currentTarget.value))}>
          {TIMES.filter(([seconds]) => seconds <= session.timeoutMax).map(([seconds, text]) => (
            <option key={seconds} value={seconds}>
              {text}
            </option>
          ))}
        </select>
      </label>
      <label>
        Environment
        <textarea rows={2} placeholder="NAME=value, one a line" spellcheck={false} value={variables} onInput={(event) => setVariables(event.currentTarget.value)} />
      </label>
      {session.granted.length > 0 ? (
        <label class="check">
          <input type="checkbox" checked={network} onChange={(event) => setNetwork(event.currentTarget.checked)} />
          Network: {session.granted.join(", ")}
        </label>
      ) : (
        <p class="muted">Without network: this server grants none.</p>
      )}
    </Dialog>
  );
}
