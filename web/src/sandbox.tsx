// One sandbox: what it is, what can be done with it, and a tab for each of its sides.
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { get, post, remove, type Sandbox, type Session } from "./api";
import { Activity } from "./activity";
import { Cells } from "./cells";
import { Files } from "./files";
import { go, useLive, useNow } from "./hooks";
import { NetworkLog } from "./network";
import { SandboxSnapshots } from "./snapshots";
import { TerminalView } from "./terminal";
import { ago, duration, short, title } from "./text";
import { Act, attempt, Button, CodeLine, Confirm, Copy, Dialog, Empty, Icon, Loading, OnlyReads, say, State, useReadOnly, type IconName } from "./ui";

const TABS: readonly (readonly [string, string, IconName])[] = [
  ["terminal", "Terminal", "terminal"],
  ["files", "Files", "file"],
  ["cells", "Cells", "code"],
  ["activity", "Activity", "chart"],
  ["network", "Network", "globe"],
  ["snapshots", "Snapshots", "camera"],
];

export function SandboxPage({ id, tab, session }: { id: string; tab: string; session: Session }) {
  const live = useLive(id, (signal) => get<Sandbox>(`/sandboxes/${encodeURIComponent(id)}`, signal), 3000);
  const sandbox = live.value;
  // A server that restarts pauses its sandboxes. The terminal stays: when it reaches the new server, that resumes this one.
  const [attached, setAttached] = useState(false);
  if (!sandbox || live.error?.status === 404) {
    if (!live.error) return <Loading />;
    return (
      <Empty icon="box" title={live.error.status === 404 ? "There is no such sandbox" : live.error.message}>
        <p>It may have been killed, or its time was over.</p>
        <a class="button plain" href="#/sandboxes">
          All sandboxes
        </a>
      </Empty>
    );
  }
  return (
    <div class="sandbox">
      <Head sandbox={sandbox} session={session} refresh={live.refresh} />
      <Tabs id={id} tab={tab} />
      <section class="tab" role="tabpanel" id="panel" aria-labelledby={`tab-${tab}`}>
        {sandbox.state === "running" || (attached && tab === "terminal") ? (
          <Side sandbox={sandbox} tab={tab} session={session} onAttached={setAttached} />
        ) : tab === "snapshots" ? (
          <SandboxSnapshots sandbox={sandbox} />
        ) : (
          <Paused sandbox={sandbox} refresh={live.refresh} />
        )}
      </section>
    </div>
  );
}

interface SideProps {
  sandbox: Sandbox;
  tab: string;
  session: Session;
  onAttached: (attached: boolean) => void;
}

function Side({ sandbox, tab, session, onAttached }: SideProps): ComponentChildren {
  const reads = useReadOnly();
  switch (tab) {
    case "files":
      return <Files id={sandbox.id} />;
    case "cells":
      return reads ? <OnlyReads icon="code" what="Running code" /> : <Cells id={sandbox.id} />;
    case "activity":
      return <Activity id={sandbox.id} session={session} />;
    case "network":
      return <NetworkLog id={sandbox.id} />;
    case "snapshots":
      return <SandboxSnapshots sandbox={sandbox} />;
    default:
      if (reads) return <OnlyReads icon="terminal" what="A terminal" />;
      return <TerminalView id={sandbox.id} onAttached={onAttached} />;
  }
}

function Paused({ sandbox, refresh }: { sandbox: Sandbox; refresh: () => Promise<void> }) {
  const [busy, set] = useState(false);
  const resume = async () => {
    set(true);
    await attempt(() => post(`/sandboxes/${sandbox.id}/resume`, { timeout: 3600 }));
    await refresh();
    set(false);
  };
  return (
    <Empty icon="pause" title="This sandbox is paused">
      <p>Its files and variables are in the store. It goes on where it was, without its processes.</p>
      <Act kind="primary" icon="play" disabled={busy} onClick={() => void resume()}>
        {busy ? "Resuming…" : "Resume"}
      </Act>
    </Empty>
  );
}

function Tabs({ id, tab }: { id: string; tab: string }) {
  const list = useRef<HTMLDivElement>(null);
  const move = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    // The one that has the focus: the address, and with it `tab`, follows a moment later.
    const place = TABS.findIndex(([name]) => `tab-${name}` === (event.target as HTMLElement).id);
    const next = TABS[(place + step + TABS.length) % TABS.length]![0];
    go("sandboxes", id, next);
    list.current?.querySelector<HTMLElement>(`#tab-${next}`)?.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label="Sides of the sandbox" ref={list} onKeyDown={move}>
      {TABS.map(([name, text, icon]) => (
        <a
          key={name}
          id={`tab-${name}`}
          role="tab"
          href={`#/sandboxes/${id}/${name}`}
          aria-selected={tab === name}
          aria-controls="panel"
          tabIndex={tab === name ? 0 : -1}
        >
          <Icon name={icon} size={16} />
          <span>{text}</span>
        </a>
      ))}
    </div>
  );
}

type Asked = "kill" | "snapshot" | "time" | "port" | undefined;

function Head({ sandbox, session, refresh }: { sandbox: Sandbox; session: Session; refresh: () => Promise<void> }) {
  const now = useNow();
  const [asked, ask] = useState<Asked>();
  const path = `/sandboxes/${sandbox.id}`;
  const reads = useReadOnly();
  const runs = sandbox.state === "running";
  const act = async (work: () => Promise<unknown>, done: string) => {
    await attempt(work, done);
    await refresh();
  };
  const fork = () =>
    attempt(async () => {
      const [made] = await post<{ sandbox: { sandboxID: string } }[]>(`${path}/fork`, { count: 1, timeout: 3600 });
      say("A branch of everything, running");
      if (made) go("sandboxes", made.sandbox.sandboxID, "terminal");
    });
  return (
    <header class="sandbox-head">
      <div class="sandbox-title">
        <p class="crumb">
          <a href="#/sandboxes">Sandboxes</a> <span aria-hidden="true">/</span>
        </p>
        <h1>{title(sandbox)}</h1>
        <State state={sandbox.state} />
      </div>
      <p class="sandbox-facts">
        <Copy text={sandbox.id} label="Copy the id">
          <code>{sandbox.id}</code>
        </Copy>
        <span>
          <Icon name="layers" size={14} /> {short(sandbox.from)}
        </span>
        <span>
          <Icon name="clock" size={14} /> {ago(sandbox.created, now)}
        </span>
        {runs && (
          <button type="button" class="linkish" disabled={reads} onClick={() => ask("time")}>
            {sandbox.onTimeout}s in {duration(sandbox.endAt - now)}
          </button>
        )}
      </p>
      <div class="sandbox-actions">
        {runs ? (
          <>
            <Act icon="globe" onClick={() => ask("port")}>
              Open port
            </Act>
            <Act icon="camera" disabled={!session.stored} onClick={() => ask("snapshot")}>
              Snapshot
            </Act>
            <Act icon="fork" onClick={() => void fork()}>
              Fork
            </Act>
            <Act icon="pause" disabled={!session.stored} onClick={() => void act(() => post(`${path}/pause`), "Paused")}>
              Pause
            </Act>
          </>
        ) : (
          <Act icon="play" onClick={() => void act(() => post(`${path}/resume`, { timeout: 3600 }), "Runs again")}>
            Resume
          </Act>
        )}
        <Act kind="danger" icon="trash" onClick={() => ask("kill")}>
          Kill
        </Act>
      </div>
      {asked === "kill" && (
        <Confirm
          title={`Kill ${title(sandbox)}?`}
          text="Its processes end and its files are gone. Snapshots that were made of it stay."
          action="Kill"
          onConfirm={async () => {
            await remove(path);
            say("Killed");
            go("sandboxes");
          }}
          onClose={() => ask(undefined)}
        />
      )}
      {asked === "port" && <OpenPort path={path} onClose={() => ask(undefined)} />}
      {asked === "snapshot" && <TakeSnapshot path={path} onClose={() => ask(undefined)} />}
      {asked === "time" && (
        <SetTime path={path} session={session} refresh={refresh} onTimeout={sandbox.onTimeout} onClose={() => ask(undefined)} />
      )}
    </header>
  );
}

function TakeSnapshot({ path, onClose }: { path: string; onClose: () => void }) {
  const [name, setName] = useState("");
  const [busy, setBusy] = useState(false);
  const take = async () => {
    setBusy(true);
    const done = await attempt(() => post(`${path}/snapshots`, name ? { name } : {}), "Snapshot taken");
    setBusy(false);
    if (done) onClose();
  };
  return (
    <Dialog
      title="Take a snapshot"
      onClose={onClose}
      onSubmit={() => void take()}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" disabled={busy}>
            Take it
          </Button>
        </>
      }
    >
      <p class="muted">Files, settings and the variables of Python and JavaScript. The sandbox goes on.</p>
      <label>
        Name
        <input
          value={name}
          pattern="[a-z0-9_\-]{1,100}"
          title="Lower-case letters, digits, - and _"
          placeholder="optional"
          onInput={(event) => setName(event.currentTarget.value)}
        />
      </label>
    </Dialog>
  );
}

/** A link to a web server inside. */
function OpenPort({ path, onClose }: { path: string; onClose: () => void }) {
  const [port, setPort] = useState(8000);
  const [url, setUrl] = useState("");
  const make = () => attempt(async () => setUrl((await post<{ url: string }>(`${path}/ports/${port}`, { seconds: 3600 })).url));
  return (
    <Dialog
      title="Open a port"
      onClose={onClose}
      onSubmit={() => void make()}
      actions={
        url ? (
          <a class="button primary" href={url} target="_blank" rel="noopener noreferrer">
            Open
          </a>
        ) : (
          <Button kind="primary" type="submit">
            Make a link
          </Button>
        )
      }
    >
      {url ? (
        <>
          <p>Whoever has this link can use port {port} for an hour.</p>
          <CodeLine text={url} label="Copy the link" />
        </>
      ) : (
        <label>
          Port that a server in the sandbox listens on
          <input type="number" min={1} max={65535} value={port} onInput={(event) => setPort(Number(event.currentTarget.value))} />
        </label>
      )}
    </Dialog>
  );
}

interface SetTimeProps {
  path: string;
  session: Session;
  onTimeout: string;
  refresh: () => Promise<void>;
  onClose: () => void;
}

function SetTime({ path, session, onTimeout, refresh, onClose }: SetTimeProps) {
  const [minutes, set] = useState(60);
  const change = async () => {
    const done = await attempt(() => post(`${path}/timeout`, { timeout: minutes * 60 }), "Time changed");
    await refresh();
    if (done) onClose();
  };
  return (
    <Dialog
      title="How long it runs"
      onClose={onClose}
      onSubmit={() => void change()}
      actions={
        <Button kind="primary" type="submit">
          Change
        </Button>
      }
    >
      <label>
        {onTimeout === "pause" ? "Pause" : "End"} it so many minutes from now
        <input type="number" min={1} max={session.timeoutMax / 60} value={minutes} onInput={(event) => set(Number(event.currentTarget.value))} />
      </label>
    </Dialog>
  );
}
