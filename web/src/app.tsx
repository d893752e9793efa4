// The frame around all views, and the way in.
import { useEffect, useState } from "preact/hooks";
import { get, post, Refused, remove, whenSignedOut, type Session } from "./api";
import { go, useRoute, useShortcut, useTheme } from "./hooks";
import { Images } from "./images";
import { Keys } from "./keys";
import { SandboxPage } from "./sandbox";
import { Sandboxes } from "./sandboxes";
import { SnapshotTreePage } from "./snapshots";
import { attempt, Button, Dialog, Icon, Loading, Logo, ReadOnly, Toasts, type IconName } from "./ui";

const VIEWS: readonly (readonly [string, string, IconName])[] = [
  ["sandboxes", "Sandboxes", "box"],
  ["snapshots", "Snapshots", "tree"],
  ["images", "Images", "layers"],
  ["keys", "Keys & usage", "key"],
];

export function App() {
  const [session, set] = useState<Session | null>();
  const [theme, toggleTheme] = useTheme();
  useEffect(() => {
    whenSignedOut(() => set(null));
    const token = /^#sign-in=([\w-]+)$/.exec(location.hash)?.[1];
    if (token) history.replaceState(null, "", location.pathname);
    const begin = async () => {
      try {
        set(token ? await post<Session>("/session", { token }) : await get<Session | null>("/session"));
      } catch {
        set(await get<Session | null>("/session").catch(() => null)); // the link was used before
      }
    };
    void begin();
  }, []);
  if (session === undefined) return <Loading />;
  const signOut = async () => {
    await attempt(() => remove("/session"));
    set(null);
  };
  return (
    <>
      {session ? (
        <Frame session={session} theme={theme} onTheme={toggleTheme} onSignOut={() => void signOut()} />
      ) : (
        <SignIn onSession={set} />
      )}
      <Toasts />
    </>
  );
}

function SignIn({ onSession }: { onSession: (session: Session) => void }) {
  const [key, setKey] = useState("");
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async () => {
    setBusy(true);
    try {
      onSession(await post<Session>("/session", { key }));
    } catch (refused) {
      if (!(refused instanceof Refused)) throw refused;
      setError(refused.message);
      setBusy(false);
    }
  };
  return (
    <main class="sign-in">
      <form
        class="card"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <Logo size={52} />
        <h1>Sign in to belljar</h1>
        <p class="muted">With an API key of this server. It printed one when it was first started.</p>
        <label>
          API key
          <input
            type="password"
            name="key"
            autocomplete="off"
            placeholder="bj_…"
            required
            value={key}
            autofocus
            onInput={(event) => setKey(event.currentTarget.value)}
            aria-invalid={error !== ""}
            aria-describedby="sign-in-error"
          />
        </label>
        <p id="sign-in-error" class="problem" role="alert" hidden={!error}>
          {error}
        </p>
        <Button kind="primary" type="submit" disabled={busy || !key}>
          Sign in
        </Button>
      </form>
    </main>
  );
}

interface FrameProps {
  session: Session;
  theme: string;
  onTheme: () => void;
  onSignOut: () => void;
}

function Frame({ session, theme, onTheme, onSignOut }: FrameProps) {
  const route = useRoute();
  const view = route[0] ?? "sandboxes";
  const [help, setHelp] = useState(false);
  useShortcut("?", () => setHelp(true));
  useEffect(() => {
    document.title = `${VIEWS.find(([name]) => name === view)?.[1] ?? "Console"} · belljar`;
  }, [view]);
  const reads = session.key.scope === "read";
  return (
    <ReadOnly.Provider value={reads}>
      <div class="frame">
        <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), document.getElementById("main")?.focus())}>
          Skip to the content
        </a>
        <nav class="side" aria-label="Views">
          <a class="brand" href="#/sandboxes">
            <Logo />
            <span>belljar</span>
          </a>
          <ul>
            {VIEWS.map(([name, text, icon]) => (
              <li key={name}>
                <a href={`#/${name}`} aria-current={view === name ? "page" : undefined}>
                  <Icon name={icon} size={19} />
                  <span>{text}</span>
                </a>
              </li>
            ))}
          </ul>
          <div class="who">
            <div class="who-name">
              <strong>{session.tenant}</strong>
              <small>
                {session.key.name || session.key.id}
                {reads && " (reads only)"} · {session.tier} · {session.version}
              </small>
            </div>
            <div class="who-buttons">
              <Button kind="ghost" icon={theme === "dark" ? "sun" : "moon"} label={theme === "dark" ? "Light theme" : "Dark theme"} onClick={onTheme} />
              <Button kind="ghost" icon="out" label="Sign out" onClick={onSignOut} />
            </div>
          </div>
        </nav>
        <main id="main" tabIndex={-1}>
          {view === "sandboxes" && route[1] ? (
            <SandboxPage key={route[1]} id={route[1]} tab={route[2] ?? "terminal"} session={session} />
          ) : view === "snapshots" ? (
            <SnapshotTreePage />
          ) : view === "images" ? (
            <Images />
          ) : view === "keys" ? (
            <Keys session={session} />
          ) : (
            <Sandboxes session={session} />
          )}
        </main>
        {help && <Shortcuts onClose={() => setHelp(false)} />}
        <GoKeys />
      </div>
    </ReadOnly.Provider>
  );
}

/** 1 to 4 choose a view. */
function GoKeys() {
  useShortcut("1", () => go("sandboxes"));
  useShortcut("2", () => go("snapshots"));
  useShortcut("3", () => go("images"));
  useShortcut("4", () => go("keys"));
  return null;
}

const KEYS = [
  ["1 – 4", "Sandboxes, snapshots, images, keys"],
  ["/", "Filter the list"],
  ["n", "New sandbox"],
  ["← →", "Between the tabs of a sandbox"],
  ["Ctrl F6", "Out of the terminal, to the tabs"],
  ["Ctrl Enter", "Run a cell"],
  ["Ctrl S", "Save the file"],
  ["Esc, then Tab", "Out of an editor"],
  ["?", "This list"],
] as const;

function Shortcuts({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keyboard" onClose={onClose}>
      <dl class="keys">
        {KEYS.map(([key, text]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
