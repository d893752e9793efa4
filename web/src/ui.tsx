// The parts that views are made of.
import { createContext, type ComponentChildren, type JSX } from "preact";
import { useContext, useEffect, useRef, useState } from "preact/hooks";
import { Refused } from "./api";

const ICONS = {
  box: "M4 8l8-4 8 4v8l-8 4-8-4zM4 8l8 4 8-4M12 12v8",
  tree: "M6 4v10a4 4 0 0 0 4 4h6M6 8h10M16 5v6h4V5zM16 15v6h4v-6z",
  layers: "M12 3l9 5-9 5-9-5zM3 13l9 5 9-5",
  key: "M14 10a4 4 0 1 0-3.5 4L13 16.500h2V18h2v2h3v-3l-6-6",
  plus: "M12 5v14M5 12h14",
  pause: "M8 5v14M16 5v14",
  play: "M7 5l12 7-12 7z",
  trash: "M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13M10 11v5M14 11v5",
  camera: "M4 8h3l2-3h6l2 3h3v11H4zM12 16.500a3.500 3.500 0 1 0 0-7 3.500 3.500 0 0 0 0 7z",
  fork: "M7 4v6a4 4 0 0 0 4 4h2a4 4 0 0 0 4-4V4M12 14v6M5 4h4M15 4h4M10 20h4",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  check: "M5 12.500l4.500 4.500L19 7",
  sun: "M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 3v1.500M12 19.500V21M3 12h1.500M19.500 12H21M5.600 5.600l1 1M17.400 17.400l1 1M5.600 18.400l1-1M17.400 6.600l1-1",
  moon: "M20 14.500A8 8 0 0 1 9.500 4 8 8 0 1 0 20 14.500z",
  out: "M10 4H5v16h5M14 8l4 4-4 4M18 12H9",
  search: "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM16 16l5 5",
  x: "M6 6l12 12M18 6L6 18",
  folder: "M3 6h6l2 2h10v11H3z",
  file: "M6 3h8l4 4v14H6zM14 3v4h4",
  link: "M10 14a4 4 0 0 0 6 0l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6 0l-3 3a4 4 0 0 0 6 6l1-1",
  chevron: "M9 6l6 6-6 6",
  download: "M12 4v11M7 11l5 5 5-5M5 20h14",
  upload: "M12 16V5M7 9l5-5 5 5M5 20h14",
  save: "M5 4h11l3 3v13H5zM8 4v5h7V4M8 20v-6h8v6",
  diff: "M12 4v10M7 9h10M7 19h10",
  terminal: "M4 5h16v14H4zM7 9l3 3-3 3M12 15h5",
  chart: "M4 4v16h16M8 16v-4M12 16V8M16 16v-6",
  globe: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM3 12h18M12 3c3 3 3 15 0 18M12 3c-3 3-3 15 0 18",
  code: "M9 7l-5 5 5 5M15 7l5 5-5 5",
  clock: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 7v5l3 2",
  refresh: "M20 12a8 8 0 1 1-2.500-5.800M20 4v4h-4",
  shield: "M12 3l8 3v6c0 5-3.500 8-8 9-4.500-1-8-4-8-9V6z",
  stop: "M7 7h10v10H7z",
  pencil: "M4 20l1-4L16 5l3 3L8 19z",
} as const;

export type IconName = keyof typeof ICONS;

export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true">
      <path d={ICONS[name]} />
    </svg>
  );
}

export function Logo({ size = 26 }: { size?: number }) {
  return (
    <svg class="logo" width={size} height={size} viewBox="0 0 32 32" aria-hidden="true">
      <path class="glass" d="M6 26V15a10 10 0 0 1 20 0v11z" />
      <path class="shine" d="M10.500 20v-5a5.500 5.500 0 0 1 3.500-5" />
      <path class="foot" d="M3 27h26" />
      <circle class="knob" cx="16" cy="4" r="2" />
    </svg>
  );
}

type ButtonProps = Omit<JSX.IntrinsicElements["button"], "icon" | "size"> & {
  kind?: "primary" | "danger" | "plain" | "ghost";
  icon?: IconName;
  /** For a button that shows only its icon. */
  label?: string;
  small?: boolean;
  children?: ComponentChildren;
};

export function Button({ kind = "plain", icon, label, small, children, ...rest }: ButtonProps) {
  const classes = `button ${kind}${small ? " small" : ""}${children ? "" : " bare"}`;
  return (
    <button type="button" class={classes} aria-label={label} title={label} {...rest}>
      {icon && <Icon name={icon} size={small ? 15 : 17} />}
      {children}
    </button>
  );
}

/** Whether the key that the page is signed in with may only read. */
export const ReadOnly = createContext(false);

export const useReadOnly = () => useContext(ReadOnly);

/** A button that changes something: there is none for a key that may only read. */
export function Act(props: ButtonProps) {
  return useReadOnly() ? null : <Button {...props} />;
}

export function OnlyReads({ icon, what }: { icon: IconName; what: string }) {
  return (
    <Empty icon={icon} title="This key may only read">
      <p>{what} takes a key that may change something. Files, activity, network and snapshots can be looked at.</p>
    </Empty>
  );
}

const STATES: Record<string, string> = { running: "good", paused: "warn", pausing: "warn", killed: "bad" };

export function State({ state }: { state: string }) {
  return <span class={`chip ${STATES[state] ?? ""}`}>{state}</span>;
}

/** Something that can be copied by a click. */
export function Copy({ text, children, label }: { text: string; children?: ComponentChildren; label: string }) {
  const [done, set] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    set(true);
    setTimeout(() => set(false), 1500);
  };
  return (
    <button type="button" class="copy" title={label} aria-label={`${label}: ${text}`} onClick={() => void copy()}>
      {children}
      <Icon name={done ? "check" : "copy"} size={14} />
    </button>
  );
}

export function CodeLine({ text, label }: { text: string; label: string }) {
  return (
    <div class="code-line">
      <code tabIndex={0}>{text}</code>
      <Copy text={text} label={label} />
    </div>
  );
}

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  actions?: ComponentChildren;
  onSubmit?: () => void;
}

/** A window above the page. Escape closes it; Enter in a field submits. */
export function Dialog({ title, onClose, children, actions, onSubmit }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = ref.current!;
    const before = document.activeElement as HTMLElement | null;
    dialog.showModal();
    dialog.querySelector<HTMLElement>("input, select, textarea, footer button")?.focus();
    return () => {
      dialog.close();
      before?.focus?.();
    };
  }, []);
  return (
    <dialog ref={ref} aria-label={title} onCancel={(event) => (event.preventDefault(), onClose())}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          onSubmit?.();
        }}
      >
        <header>
          <h2>{title}</h2>
          <Button kind="ghost" icon="x" label="Close" onClick={onClose} />
        </header>
        <div class="dialog-body">{children}</div>
        {actions && <footer>{actions}</footer>}
      </form>
    </dialog>
  );
}

interface ConfirmProps {
  title: string;
  text: string;
  action: string;
  onConfirm: () => Promise<void>;
  onClose: () => void;
}

export function Confirm({ title, text, action, onConfirm, onClose }: ConfirmProps) {
  const [busy, set] = useState(false);
  const confirm = async () => {
    set(true);
    await attempt(onConfirm);
    onClose();
  };
  return (
    <Dialog
      title={title}
      onClose={onClose}
      onSubmit={() => void confirm()}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="danger" type="submit" disabled={busy}>
            {action}
          </Button>
        </>
      }
    >
      <p>{text}</p>
    </Dialog>
  );
}

interface Toast {
  id: number;
  kind: "good" | "bad";
  text: string;
}

let tell: (kind: Toast["kind"], text: string) => void = () => {};

/** Say something in a corner of the page for a few seconds. */
export function say(text: string) {
  tell("good", text);
}

export function complain(text: string) {
  tell("bad", text);
}

/** Do something; if the server refuses, say so. Whether it was done. */
export async function attempt(work: () => Promise<unknown>, done?: string): Promise<boolean> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    complain(error.message);
    return false;
  }
  if (done) say(done);
  return true;
}

export function Toasts() {
  const [shown, set] = useState<Toast[]>([]);
  useEffect(() => {
    let last = 0;
    tell = (kind, text) => {
      const id = ++last;
      set((before) => [...before.slice(-3), { id, kind, text }]);
      setTimeout(() => set((before) => before.filter((toast) => toast.id !== id)), kind === "bad" ? 8000 : 3500);
    };
  }, []);
  return (
    <div class="toasts" role="status" aria-live="polite">
      {shown.map((toast) => (
        <div key={toast.id} class={`toast ${toast.kind}`}>
          <Icon name={toast.kind === "good" ? "check" : "shield"} size={16} />
          <span>{toast.text}</span>
        </div>
      ))}
    </div>
  );
}

export function Empty({ icon, title, children }: { icon: IconName; title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <span class="empty-icon">
        <Icon name={icon} size={28} />
      </span>
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export function Problem({ error }: { error: Refused | undefined }) {
  return error ? (
    <p class="problem" role="alert">
      {error.message}
    </p>
  ) : null;
}

export function Loading() {
  return <div class="loading" role="status" aria-label="Loading" />;
}

/** The head of a table; with `actions`, the last column is for buttons. */
export function Columns({ names, actions }: { names: string[]; actions?: boolean }) {
  return (
    <thead>
      <tr>
        {names.map((name) => (
          <th key={name} scope="col">
            {name}
          </th>
        ))}
        {actions && (
          <th scope="col">
            <span class="hidden">Actions</span>
          </th>
        )}
      </tr>
    </thead>
  );
}

interface SegmentsProps<T extends string> {
  label: string;
  value: T;
  options: readonly (readonly [T, string])[];
  onChange: (value: T) => void;
}

/** One choice of a few. */
export function Segments<T extends string>({ label, value, options, onChange }: SegmentsProps<T>) {
  return (
    <div class="segments" role="group" aria-label={label}>
      {options.map(([each, text]) => (
        <button key={each} type="button" aria-pressed={each === value} onClick={() => onChange(each)}>
          {text}
        </button>
      ))}
    </div>
  );
}

/** A share of a whole. */
export function Meter({ part, whole, label }: { part: number; whole: number; label: string }) {
  const share = whole > 0 ? Math.min(1, part / whole) : 0;
  const kind = share > 0.9 ? "bad" : share > 0.7 ? "warn" : "";
  return (
    <svg class={`meter ${kind}`} viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label={label}>
      <rect class="track" width="100" height="6" rx="3" />
      <rect class="bar" width={Math.max(share * 100, part > 0 ? 2 : 0)} height="6" rx="3" />
    </svg>
  );
}
