// What of a worker an engine does not need once it is loaded. The wall is the worker's policy; this is a second one.

const NAMES = [
  "fetch", "XMLHttpRequest", "WebSocket", "EventSource", "WebTransport", "Worker", "SharedWorker", "indexedDB", "caches",
  "BroadcastChannel", "importScripts", "cookieStore", "navigator",
];

export function forgetGlobals() {
  for (const name of NAMES) Object.defineProperty(globalThis, name, { value: undefined, configurable: true });
}
