// How a page, or a sandbox's worker in it, starts a worker for guest code.

export function startEngine(script, onMessage) {
  const worker = new Worker(new URL(script, import.meta.url), { type: "module" });
  worker.onmessage = ({ data }) => onMessage(data);
  worker.onerror = () => onMessage({ ended: true });
  return { post: (message) => worker.postMessage(message), terminate: () => worker.terminate() };
}
