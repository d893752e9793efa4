// Numbers and times for people.

const UNITS = ["B", "KB", "MB", "GB", "TB"];

export function bytes(count: number): string {
  let unit = 0;
  while (count >= 1000 && unit < UNITS.length - 1) {
    count /= 1024;
    unit += 1;
  }
  return `${count >= 100 || unit === 0 ? Math.round(count) : count.toFixed(1)} ${UNITS[unit]}`;
}

export function count(number: number): string {
  return new Intl.NumberFormat("en", { notation: number >= 10000 ? "compact" : "standard", maximumFractionDigits: 1 }).format(
    number,
  );
}

/** How long so many seconds are: "4 s", "3 min", "2 h 5 min". */
export function duration(seconds: number): string {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

export function ago(time: number, now: number): string {
  return now - time < 5 ? "just now" : `${duration(now - time)} ago`;
}

export function clock(time: number): string {
  return new Date(time * 1000).toLocaleTimeString("en-GB");
}

export function date(time: number): string {
  return new Date(time * 1000).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}

/** The name a person gave a sandbox, or the beginning of its id. */
export function title(sandbox: { id: string; name: string }): string {
  return sandbox.name || sandbox.id.slice(0, 8);
}

/** A file's mode as ls shows it. */
export function mode(kind: string, bits: number): string {
  const letters = "rwxrwxrwx".split("").map((letter, place) => (bits & (1 << (8 - place)) ? letter : "-"));
  return (kind === "directory" ? "d" : kind === "symlink" ? "l" : "-") + letters.join("");
}

/** Text without the codes that colour a terminal. */
export function plain(text: string): string {
  // eslint-disable-next-line no-control-regex
  return text.replace(/\x1b\[[0-9;?]*[ -/]*[@-~]/g, "");
}

/** A name, or the beginning of an id. */
export function short(name: string): string {
  return name.length > 24 ? `${name.slice(0, 8)}…` : name;
}
