// A shell of the sandbox. It stays on the server while this page is away, with what it showed meanwhile.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Terminal } from "@xterm/xterm";
import { API, at } from "./api";
import { useTheme, type Theme } from "./hooks";
import { Button } from "./ui";

type Status = "connecting" | "connected" | "reconnecting" | "ended" | "gone";

const ENDED = 4410;
const GONE = 4404;
const REFUSED = 4429;
const ACK_EVERY = 32 << 10;
const PIECE = 32 << 10;
const SLOWEST = 5000;

/** The connection between a terminal here and a shell there. */
class Shell {
  private socket: WebSocket | undefined;
  private terminal = "";
  private received = 0; // offsets of the output
  private shown = 0;
  private told = 0;
  private tries = 0;
  private timer = 0;
  private closed = false;

  constructor(
    private readonly id: string,
    private readonly screen: Terminal,
    private readonly onStatus: (status: Status, why: string) => void,
  ) {
    this.terminal = sessionStorage.getItem(`shell:${id}`) ?? "";
    screen.onData((text) => this.type(new TextEncoder().encode(text)));
    screen.onBinary((text) => this.type(Uint8Array.from(text, (letter) => letter.charCodeAt(0))));
    screen.onResize(({ rows, cols }) => this.send(JSON.stringify({ size: [rows, cols] })));
  }

  connect() {
    window.clearTimeout(this.timer);
    const { rows, cols } = this.screen;
    const query = { rows, cols, ...(this.terminal ? { terminal: this.terminal, from: this.received } : {}) };
    const url = new URL(at(`${API}/sandboxes/${this.id}/terminal`, query), location.href);
    url.protocol = url.protocol.replace("http", "ws");
    const socket = new WebSocket(url);
    socket.binaryType = "arraybuffer";
    socket.onmessage = (event) => (typeof event.data === "string" ? this.attached(JSON.parse(event.data)) : this.show(event.data));
    socket.onclose = (event) => this.lost(event.code, event.reason);
    this.socket = socket;
  }

  private attached(hello: { terminal: string; from: number }) {
    const another = hello.terminal !== this.terminal;
    if (another && this.received > 0) this.screen.write("\r\n\x1b[0;2m— the shell has ended with its server; this is a new one —\x1b[0m\r\n");
    else if (hello.from > this.received && this.received > 0) this.screen.write("\r\n\x1b[0;2m— some output was lost —\x1b[0m\r\n");
    this.terminal = hello.terminal;
    this.received = this.shown = this.told = hello.from;
    sessionStorage.setItem(`shell:${this.id}`, hello.terminal);
    this.tries = 0;
    this.onStatus("connected", "");
    const { rows, cols } = this.screen;
    this.send(JSON.stringify({ size: [rows, cols] }));
  }

  private show(data: ArrayBuffer) {
    this.received += data.byteLength;
    this.screen.write(new Uint8Array(data), () => {
      this.shown += data.byteLength;
      if (this.shown - this.told < ACK_EVERY) return;
      this.told = this.shown;
      this.send(JSON.stringify({ shown: this.shown }));
    });
  }

  private type(data: Uint8Array<ArrayBuffer>) {
    for (let from = 0; from < data.length; from += PIECE) this.send(data.slice(from, from + PIECE));
  }

  private send(data: string | Uint8Array<ArrayBuffer>) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(data);
  }

  private lost(code: number, reason: string) {
    if (this.closed) return;
    if (code === ENDED || code === GONE || code === REFUSED) {
      this.forget();
      this.onStatus(code === ENDED ? "ended" : "gone", reason);
      return;
    }
    this.onStatus("reconnecting", "");
    const wait = Math.min(SLOWEST, 250 * 2 ** this.tries++);
    this.timer = window.setTimeout(() => this.connect(), wait);
  }

  private forget() {
    this.terminal = "";
    this.received = this.shown = this.told = 0;
    sessionStorage.removeItem(`shell:${this.id}`);
  }

  /** Leave this shell as it is, and begin another. */
  another() {
    this.forget();
    this.screen.reset();
    if (this.socket) this.socket.onclose = null;
    this.socket?.close();
    this.connect();
  }

  close() {
    this.closed = true;
    window.clearTimeout(this.timer);
    this.socket?.close();
  }
}

const LIGHT = {
  background: "#ffffff", foreground: "#1f2330", cursor: "#5b5bd6", cursorAccent: "#ffffff", selectionBackground: "#d9dcff",
  black: "#1f2330", red: "#c4314b", green: "#1a7f4b", yellow: "#8f5f00", blue: "#2f5fd0", magenta: "#9333b5", cyan: "#0b7285", white: "#6b7080",
  brightBlack: "#6b7080", brightRed: "#d6405c", brightGreen: "#12804a", brightYellow: "#9a6700", brightBlue: "#3d6fe0", brightMagenta: "#a445c7", brightCyan: "#0e7f95", brightWhite: "#1f2330",
};
const DARK = {
  background: "#0e1016", foreground: "#d8dbe6", cursor: "#9ea3ff", cursorAccent: "#0e1016", selectionBackground: "#343a66",
  black: "#1b1e29", red: "#ff7a8a", green: "#6fdc9f", yellow: "#ffd166", blue: "#82aaff", magenta: "#d7a0ff", cyan: "#6fdfe8", white: "#d8dbe6",
  brightBlack: "#7d8398", brightRed: "#ff98a5", brightGreen: "#93f0bb", brightYellow: "#ffe08f", brightBlue: "#a6c3ff", brightMagenta: "#e6c3ff", brightCyan: "#9bf0f5", brightWhite: "#ffffff",
};
const WORDS: Record<Status, string> = {
  connecting: "Connecting…",
  connected: "Connected",
  reconnecting: "Connection lost, trying again…",
  ended: "The shell has ended",
  gone: "Not connected",
};

async function open(place: HTMLElement, theme: Theme) {
  await import("./nonce");
  const [{ Terminal }, { FitAddon }] = await Promise.all([import("@xterm/xterm"), import("@xterm/addon-fit")]);
  const screen = new Terminal({
    fontFamily: '"JetBrains Mono Variable", ui-monospace, monospace',
    fontSize: 13,
    lineHeight: 1.25,
    cursorBlink: true,
    minimumContrastRatio: 4.5,
    scrollback: 10000,
    screenReaderMode: false,
    theme: theme === "dark" ? DARK : LIGHT,
  });
  const fit = new FitAddon();
  screen.loadAddon(fit);
  await document.fonts.load('13px "JetBrains Mono Variable"');
  screen.open(place);
  fit.fit();
  return { screen, fit };
}

/** `onAttached` is told whether there is a shell, or one to come back to. */
export function TerminalView({ id, onAttached }: { id: string; onAttached: (attached: boolean) => void }) {
  const place = useRef<HTMLDivElement>(null);
  const shell = useRef<Shell | undefined>(undefined);
  const terminal = useRef<Terminal | undefined>(undefined);
  const [status, setStatus] = useState<[Status, string]>(["connecting", ""]);
  const [size, setSize] = useState("");
  const [theme] = useTheme();
  useEffect(() => {
    let over = false;
    let observer: ResizeObserver | undefined;
    const begin = async () => {
      const { screen, fit } = await open(place.current!, theme);
      if (over) return screen.dispose();
      terminal.current = screen;
      shell.current = new Shell(id, screen, (now, why) => {
        setStatus([now, why]);
        onAttached(now !== "ended" && now !== "gone");
      });
      const measure = () => setSize(`${screen.cols} × ${screen.rows}`);
      screen.onResize(measure);
      measure();
      screen.attachCustomKeyEventHandler((event) => {
        if (event.key !== "F6" || !event.ctrlKey) return true;
        document.getElementById("tab-terminal")?.focus();
        return false;
      });
      observer = new ResizeObserver(() => fit.fit());
      observer.observe(place.current!);
      shell.current.connect();
      screen.focus();
    };
    void begin();
    return () => {
      over = true;
      onAttached(false);
      observer?.disconnect();
      shell.current?.close();
      terminal.current?.dispose();
    };
  }, [id]);
  useEffect(() => {
    if (terminal.current) terminal.current.options.theme = theme === "dark" ? DARK : LIGHT;
  }, [theme]);
  const another = () => {
    setStatus(["connecting", ""]);
    shell.current?.another();
    terminal.current?.focus();
  };
  const [now, why] = status;
  const over = now === "ended" || now === "gone";
  return (
    <div class="shell">
      <div class="shell-bar">
        <span class={`dot ${now === "connected" ? "good" : over ? "bad" : "warn"}`} />
        <span role="status">{why && over ? why : WORDS[now]}</span>
        <span class="muted size">{size}</span>
        <span class="spacer" />
        <Button small icon="plus" onClick={another}>
          New shell
        </Button>
        <Button small icon="x" onClick={() => terminal.current?.clear()}>
          Clear
        </Button>
      </div>
      <div class="shell-place" data-status={now}>
        <div ref={place} />
      </div>
    </div>
  );
}
