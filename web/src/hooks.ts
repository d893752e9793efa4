// State that views share: the route, the clock, what is polled, the theme.
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Refused } from "./api";

export interface Live<T> {
  value: T | undefined;
  error: Refused | undefined;
  refresh: () => Promise<void>;
}

/** What `load` gives, asked for again every `ms` while the page can be seen. `key` names what is loaded. */
export function useLive<T>(key: string, load: (signal: AbortSignal) => Promise<T>, ms = 0): Live<T> {
  const [state, set] = useState<{ key: string; value?: T; error?: Refused }>({ key });
  const loader = useRef(load);
  loader.current = load;
  const refresh = useCallback(
    async (signal: AbortSignal = new AbortController().signal) => {
      try {
        const value = await loader.current(signal);
        if (!signal.aborted) set({ key, value });
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof Refused)) throw error;
        set((before) => ({ ...(before.key === key ? before : { key }), error }));
      }
    },
    [key],
  );
  useEffect(() => {
    const stop = new AbortController();
    let timer = 0;
    const turn = async () => {
      try {
        if (!document.hidden) await refresh(stop.signal);
      } finally {
        if (ms && !stop.signal.aborted) timer = window.setTimeout(turn, ms);
      }
    };
    void turn();
    const seen = () => {
      if (!document.hidden && ms) void refresh(stop.signal);
    };
    document.addEventListener("visibilitychange", seen);
    return () => {
      stop.abort();
      window.clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [refresh, ms]);
  const current = state.key === key ? state : { key };
  return { value: current.value, error: current.error, refresh: () => refresh() };
}

/** The words of the address after `#/`. */
export function useRoute(): string[] {
  const read = () => location.hash.replace(/^#\/?/, "").split("/").filter(Boolean).map(decode);
  const [route, set] = useState(read);
  // Not useEffect: an address that changes before it is called, by a key, would not be heard of.
  useLayoutEffect(() => {
    const changed = () => set(read());
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  return route;
}

function decode(word: string): string {
  try {
    return decodeURIComponent(word);
  } catch {
    return word;
  }
}

export function go(...words: string[]) {
  location.hash = "/" + words.map(encodeURIComponent).join("/");
}

/** Seconds since 1970, now and every second. */
export function useNow(): number {
  const [now, set] = useState(() => Date.now() / 1000);
  useEffect(() => {
    const timer = window.setInterval(() => set(Date.now() / 1000), 1000);
    return () => window.clearInterval(timer);
  }, []);
  return now;
}

export type Theme = "light" | "dark";
const dark = window.matchMedia("(prefers-color-scheme: dark)");

function theme(): Theme {
  const chosen = localStorage.getItem("theme");
  return chosen === "light" || chosen === "dark" ? chosen : dark.matches ? "dark" : "light";
}

export function useTheme(): [Theme, () => void] {
  const [current, set] = useState(theme);
  useEffect(() => {
    document.documentElement.dataset.theme = current;
  }, [current]);
  useEffect(() => {
    const changed = () => set(theme());
    dark.addEventListener("change", changed);
    window.addEventListener("themechange", changed);
    return () => {
      dark.removeEventListener("change", changed);
      window.removeEventListener("themechange", changed);
    };
  }, []);
  const toggle = () => {
    localStorage.setItem("theme", current === "dark" ? "light" : "dark");
    window.dispatchEvent(new Event("themechange"));
  };
  return [current, toggle];
}

/** Call `act` for a key that is pressed while nobody types. */
export function useShortcut(key: string, act: () => void) {
  const latest = useRef(act);
  latest.current = act;
  // Not useEffect, which is called some time after the view is seen: a key that is pressed then would be lost.
  useLayoutEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      const typing = target.closest("input, textarea, select, [contenteditable=true], .xterm, dialog");
      if (event.key !== key || typing || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      latest.current();
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, [key]);
}
