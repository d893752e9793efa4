// Calls to the server that this page came from, and the shapes of its answers.

export interface Session {
  tenant: string;
  key: { id: string; name: string; scope: string };
  version: string;
  tier: string;
  stored: boolean;
  granted: string[];
  timeoutMax: number;
  limits: { memory: number; disk: number };
  quota: { sandboxes: number; kept: number; execsPerMinute: number };
}

export interface Sample {
  at: number;
  cpu: number;
  memory: number;
  bytes: number;
  files: number;
  processes: number;
  uptime: number;
  network_bytes_in: number;
  network_bytes_out: number;
  network_denied: number;
}

export interface Sandbox {
  id: string;
  name: string;
  metadata: Record<string, string>;
  template: string;
  from: string; // the name of the image or snapshot
  state: "running" | "pausing" | "paused" | "killed";
  created: number;
  endAt: number;
  onTimeout: "pause" | "kill";
  sample: Sample | null;
}

export interface Entry {
  name: string | null; // null: a name that is no text
  shown: string;
  kind: "file" | "directory" | "symlink" | "other" | string;
  size: number;
  mode: number;
  mtime: number;
}

export interface Process {
  pid: number;
  parent: number;
  state: string;
  cpu: number;
  memory: number;
  command: string;
}

export interface NetworkEvent {
  time: number;
  action: string;
  protocol?: string;
  name?: string;
  type?: string;
  ip?: string;
  port?: number;
  hostname?: string | null;
  verdict?: string;
  reason?: string;
  target?: string;
  result?: string;
  of?: string;
  allow: string | null;
}

export interface Network {
  events: NetworkEvent[];
  granted: string[];
  allowOut: string[] | null;
  denyOut: string[] | null;
  internet: boolean | null;
}

export interface Snapshot {
  id: string;
  name: string | null;
  sandbox: string;
  created: number;
  parent: string;
  image: boolean;
}

export interface SnapshotTree {
  snapshots: Snapshot[];
  sandboxes: (Sandbox & { parent: string; image: boolean })[];
  stored: boolean;
}

export interface Image {
  name: string;
  kind: string;
  state?: string;
  digest: string;
  size: number;
  user: string;
  cwd: string;
  env: Record<string, string>;
  command: string[];
  history: string[];
}

export interface Key {
  id: string;
  name: string;
  scope: string;
  created: number;
  revoked: number | null;
  own: boolean;
}

export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

export const API = "/console/api";
const HEADERS = { "X-Belljar-Console": "1" };

let onSignedOut: () => void = () => {};

/** Have the page be told that its session is over. */
export function whenSignedOut(tell: () => void) {
  onSignedOut = tell;
}

/** Ask the server; the answer as it comes. Refused for any but a good one. */
export async function ask(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  const raw = body instanceof Blob;
  const options: RequestInit = { method, headers: { ...HEADERS }, credentials: "same-origin", signal: signal ?? null };
  if (raw) {
    options.body = body;
    options.headers = { ...HEADERS, "Content-Type": "application/octet-stream" };
  } else if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers = { ...HEADERS, "Content-Type": "application/json" };
  }
  let answer: Response;
  try {
    answer = await fetch(API + path, options);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Refused(0, "The server can't be reached");
  }
  if (answer.ok) return answer;
  let message = `The server answered ${answer.status}`;
  try {
    message = String((await answer.json()).message ?? message);
  } catch {
    // no JSON: something before the server answered
  }
  if (answer.status === 401 && path !== "/session") onSignedOut();
  throw new Refused(answer.status, message);
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await (await ask("GET", path, undefined, signal)).json()) as T;
}

export async function post<T = unknown>(path: string, body: unknown = {}): Promise<T> {
  const answer = await ask("POST", path, body);
  const text = await answer.text();
  return (text ? JSON.parse(text) : undefined) as T;
}

export async function remove(path: string): Promise<void> {
  await ask("DELETE", path);
}

/** A path of the API with a query. */
export function at(path: string, query: Record<string, string | number>): string {
  const text = new URLSearchParams(Object.entries(query).map(([k, v]) => [k, String(v)]));
  return `${path}?${text}`;
}
