/// <reference lib="esnext.disposable" />
/** belljar in a page or in Node: see docs/browser.md. */

export type Data = string | Uint8Array;
export type Plain = null | boolean | number | bigint | string | Uint8Array | Date | Plain[] | { [key: string]: Plain } | Map<Plain, Plain>;

export interface Limits {
  steps?: number; cpuSeconds?: number; wallSeconds?: number; outputBytes?: number; processes?: number; depth?: number;
  expansionBytes?: number; openFiles?: number; fileBytes?: number; files?: number;
  /** Of a program of `python3`, `node` or WebAssembly. */
  memoryBytes?: number;
}

export interface NetworkRequest { method: string; url: string; headers: Headers; body: Uint8Array | undefined }
export type Policy = (request: NetworkRequest) => boolean | Response | Promise<boolean | Response>;
export type Network = string[] | { allow?: string[]; policy?: Policy; redirects?: boolean };
export type Tool = (...args: any[]) => unknown;

export interface Event { type: "exec" | "limit" | "network" | "incident" | "died"; time: number; [field: string]: unknown }

export interface Options {
  files?: Record<string, Data | [Data, number]>;
  env?: Record<string, string>;
  cwd?: string;
  user?: string;
  hostname?: string;
  limits?: Limits;
  network?: Network;
  tools?: Record<string, Tool>;
  snapshot?: Uint8Array;
  onEvent?: (event: Event) => void;
  signal?: AbortSignal;
  /** In a page only: the address of a built page of another origin, where the sandbox lives; see docs/browser.md. */
  bridge?: string;
  /** In Node only: let guest Python run, without a wall around it. */
  trustPython?: boolean;
}

export interface ExecOptions {
  cwd?: string; env?: Record<string, string>; stdin?: Data; timeout?: number; limits?: Limits; mergeStderr?: boolean;
  onStdout?: (data: Uint8Array) => void; onStderr?: (data: Uint8Array) => void; signal?: AbortSignal;
}

export interface ExecResult {
  stdout: string; stderr: string; stdoutBytes: Uint8Array; stderrBytes: Uint8Array; exitCode: number; ok: boolean;
  timedOut: boolean; limit: string | null; truncated: boolean; durationMs: number;
}

export interface Entry { name: string; kind: "file" | "directory" | "symlink" | "fifo" | "socket" | "other"; mode: number; size: number; mtime: Date }

export interface Files {
  read(path: string): Promise<string>;
  readBytes(path: string): Promise<Uint8Array>;
  write(path: string, data: Data, options?: { mode?: number; append?: boolean }): Promise<void>;
  writeMany(files: [string, Data][]): Promise<{ path: string; error: FileError | null }[]>;
  list(path?: string): Promise<Entry[]>;
  stat(path: string, options?: { follow?: boolean }): Promise<Entry>;
  exists(path: string): Promise<boolean>;
  mkdir(path: string, options?: { parents?: boolean }): Promise<void>;
  symlink(target: string, path: string): Promise<void>;
  readlink(path: string): Promise<string>;
  remove(path: string, options?: { recursive?: boolean }): Promise<void>;
  rename(old: string, path: string): Promise<void>;
  chmod(path: string, mode: number): Promise<void>;
}

export interface Process {
  readonly pid: number;
  readonly exited: boolean;
  readonly stdin: WritableStream<Data>;
  readonly stdout: ReadableStream<Uint8Array>;
  readonly stderr: ReadableStream<Uint8Array>;
  wait(): Promise<number>;
  kill(signal?: string | number): void;
}

export interface Terminal {
  readonly pid: number;
  readonly output: ReadableStream<Uint8Array>;
  write(data: Data): void;
  resize(rows: number, cols: number): void;
  wait(): Promise<number>;
  kill(signal?: string | number): void;
}

export interface RunResult {
  ok: boolean; value: Plain; exports: Record<string, Plain>; stdout: string; stderr: string; durationMs: number;
  error: { code: string; name: string; message: string; stack: string } | null;
  outputs: { mime: string; data: string | Uint8Array }[];
}

export interface Interpreter {
  run(code: string, options?: { globals?: Record<string, Plain | Tool>; wallMs?: number; onStdout?: (data: Uint8Array) => void; onStderr?: (data: Uint8Array) => void }): Promise<RunResult>;
  interrupt(): void;
  reset(): void;
}

export interface JsRunOptions {
  globals?: Record<string, Plain | Tool>;
  cpuMs?: number; wallMs?: number; memoryMb?: number; maxBridgeCalls?: number; maxBridgeBytes?: number;
  onStdout?: (data: Uint8Array) => void; onStderr?: (data: Uint8Array) => void;
}

/** JavaScript on QuickJS: no files, no commands, and a network only if the sandbox has one. */
export interface JsInterpreter {
  /** `unsent` of the result: names of exports that are no plain data, and what they are. */
  run(code: string, options?: JsRunOptions): Promise<RunResult & { unsent: Record<string, string> }>;
  reset(): void;
}

export class Sandbox {
  static create(options?: Options): Promise<Sandbox>;
  static restore(snapshot: Uint8Array, options?: Options): Promise<Sandbox>;
  readonly files: Files;
  readonly python: Interpreter;
  readonly js: JsInterpreter;
  readonly closed: boolean;
  exec(command: string | string[], options?: ExecOptions): Promise<ExecResult>;
  spawn(command: string | string[], options?: { cwd?: string; env?: Record<string, string>; stdin?: Data; limits?: Limits }): Promise<Process>;
  pty(command?: string | string[], options?: { cwd?: string; env?: Record<string, string>; rows?: number; cols?: number; limits?: Limits }): Promise<Terminal>;
  snapshot(label?: string): Promise<Uint8Array>;
  stats(): Promise<Record<string, number>>;
  fork(): never;
  close(): void;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Snapshots that stay in this browser (OPFS). In Node each raises: put the bytes of `snapshot()` into a file. */
export const snapshots: {
  save(name: string, what: Sandbox | Uint8Array): Promise<void>;
  list(): Promise<{ name: string; size: number; modified: Date }[]>;
  load(name: string): Promise<Uint8Array>;
  remove(name: string): Promise<void>;
};

export class SandboxError extends Error {}
export class SandboxClosed extends SandboxError {}
export class SandboxDied extends SandboxError {}
export class NotInABrowser extends SandboxError {}
export class FileError extends SandboxError { errno: number; code: string; path: string }
