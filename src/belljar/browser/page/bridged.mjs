// A sandbox's workers on another origin: in a frame with that origin's bridge.html, spoken to by a port.

const SECONDS = 60;

export function bridged(address) {
  const interpreters = new Map(); // of `sandbox.js`: by number, who is told what one says
  let port = null;
  let next = 1;
  return {
    async start({ onMessage, onDeath }) {
      const frame = await open(address);
      const channel = new MessageChannel();
      port = channel.port1;
      port.onmessage = ({ data }) => {
        if (data.interpreter !== undefined) interpreters.get(data.interpreter)?.(data.said);
        else if (data.died !== undefined) onDeath(String(data.died));
        else onMessage(data);
      };
      frame.contentWindow.postMessage({ belljar: "start" }, address.origin, [channel.port2]);
      return {
        interrupt: null,
        post: (message) => port.postMessage(message),
        terminate() {
          port.close();
          frame.remove();
        },
      };
    },

    startEngine(_script, onMessage) {
      const interpreter = next++;
      interpreters.set(interpreter, onMessage);
      port.postMessage({ interpreter });
      return {
        post: ({ message }) => port.postMessage({ interpreter, message }),
        terminate() {
          interpreters.delete(interpreter);
          port.postMessage({ interpreter, end: true });
        },
      };
    },
  };
}

/** The frame, once its page has said that it is there. */
async function open(address) {
  const frame = document.createElement("iframe");
  frame.hidden = true;
  frame.title = "belljar";
  frame.allow = "cross-origin-isolated";
  frame.src = new URL("bridge.html", address).href;
  await new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(
      `${frame.src} did not answer: was that page built with --embed ${globalThis.location.origin}?`,
    )), SECONDS * 1000);
    const hear = (event) => {
      if (event.source !== frame.contentWindow || event.origin !== address.origin || event.data?.belljar !== "bridge") return;
      window.removeEventListener("message", hear);
      clearTimeout(late);
      resolve();
    };
    window.addEventListener("message", hear);
    document.body.append(frame);
  }).catch((error) => {
    frame.remove();
    throw error;
  });
  return frame;
}
