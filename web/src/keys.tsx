// Keys of the tenant, what it used, and what was done with them.
import { useState } from "preact/hooks";
import { get, post, remove, type Key, type Session } from "./api";
import { Bars } from "./chart";
import { useLive, useNow } from "./hooks";
import { ago, bytes, count, date } from "./text";
import { Act, attempt, Button, CodeLine, Columns, Confirm, Dialog, Loading, Problem } from "./ui";

interface Amount {
  hour: number;
  name: string;
  amount: number;
}

interface Done {
  at: number;
  key: string;
  action: string;
  subject: string;
}

const HOURS = 48;

export function Keys({ session }: { session: Session }) {
  return (
    <div class="page">
      <header class="page-head">
        <h1>Keys &amp; usage</h1>
        <span class="muted">tenant {session.tenant}</span>
      </header>
      <Usage />
      <KeyTable />
      <Log />
    </div>
  );
}

function Usage() {
  const live = useLive("usage", (signal) => get<Amount[]>("/usage", signal), 15000);
  const now = Math.floor(Date.now() / 3600_000);
  const bars = (...names: string[]) =>
    Array.from({ length: HOURS }, (_, place) => {
      const hour = now - HOURS + 1 + place;
      const value = (live.value ?? []).filter((each) => each.hour === hour && names.includes(each.name)).reduce((sum, each) => sum + each.amount, 0);
      return { label: date(hour * 3600), value };
    });
  return (
    <section aria-label="Usage">
      <Problem error={live.error} />
      <div class="charts">
        <Bars title="Time of sandboxes" bars={bars("sandbox_seconds")} format={(value) => `${(value / 3600).toFixed(2)} h`} />
        <Bars title="Commands and runs" bars={bars("execs")} format={count} />
        <Bars title="Bytes in and out" bars={bars("bytes_in", "bytes_out")} format={bytes} />
      </div>
    </section>
  );
}

function KeyTable() {
  const live = useLive("keys", (signal) => get<Key[]>("/keys", signal), 10000);
  const now = useNow();
  const [making, setMaking] = useState(false);
  const [revoking, setRevoking] = useState<Key>();
  const keys = (live.value ?? []).toSorted((a, b) => Number(a.revoked !== null) - Number(b.revoked !== null) || b.created - a.created);
  return (
    <section class="card table-card">
      <header class="card-head">
        <h2>API keys</h2>
        <Act small kind="primary" icon="plus" onClick={() => setMaking(true)}>
          New key
        </Act>
      </header>
      <Problem error={live.error} />
      {!live.value && <Loading />}
      <table class="rows">
        <Columns names={["Name", "Begins with", "Scope", "Made"]} actions />
        <tbody>
          {keys.map((key) => (
            <tr key={key.id} class={key.revoked ? "dim" : ""}>
              <td class="main-cell">
                {key.name || "–"} {key.own && <span class="chip">yours</span>}
              </td>
              <td data-label="Begins with">
                <code>bj_{key.id}</code>
              </td>
              <td data-label="Scope">{key.revoked ? "revoked" : key.scope}</td>
              <td data-label="Made">{ago(key.created, now)}</td>
              <td class="actions">
                {!key.revoked && !key.own && (
                  <Act small onClick={() => setRevoking(key)}>
                    Revoke
                  </Act>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {making && <NewKey onClose={() => setMaking(false)} refresh={live.refresh} />}
      {revoking && (
        <Confirm
          title={`Revoke ${revoking.name || revoking.id}?`}
          text="Whoever uses it is refused from now on."
          action="Revoke"
          onConfirm={async () => {
            await remove(`/keys/${revoking.id}`);
            await live.refresh();
          }}
          onClose={() => setRevoking(undefined)}
        />
      )}
    </section>
  );
}

function NewKey({ onClose, refresh }: { onClose: () => void; refresh: () => Promise<void> }) {
  const [name, setName] = useState("");
  const [made, setMade] = useState("");
  const make = () =>
    attempt(async () => {
      setMade((await post<{ key: string }>("/keys", { name })).key);
      await refresh();
    });
  if (made) {
    return (
      <Dialog title="The new key" onClose={onClose} actions={<Button kind="primary" onClick={onClose}>Done</Button>}>
        <p>Keep it now: it is not shown again.</p>
        <CodeLine text={made} label="Copy the key" />
      </Dialog>
    );
  }
  return (
    <Dialog
      title="New key"
      onClose={onClose}
      onSubmit={() => void make()}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit">
            Make
          </Button>
        </>
      }
    >
      <label>
        What it is for
        <input value={name} maxLength={100} placeholder="ci" onInput={(event) => setName(event.currentTarget.value)} />
      </label>
    </Dialog>
  );
}

function Log() {
  const live = useLive("audit", (signal) => get<Done[]>("/audit", signal), 10000);
  const now = useNow();
  return (
    <section class="card table-card">
      <header class="card-head">
        <h2>What was done</h2>
      </header>
      <Problem error={live.error} />
      <table class="rows">
        <Columns names={["Action", "Sandbox", "Key", "When"]} />
        <tbody>
          {(live.value ?? []).slice(0, 50).map((each, place) => (
            <tr key={place}>
              <td class="main-cell">{each.action}</td>
              <td data-label="Sandbox">
                <code>{each.subject || "–"}</code>
              </td>
              <td data-label="Key">
                <code>{each.key}</code>
              </td>
              <td data-label="When" title={date(each.at)}>
                {ago(each.at, now)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
