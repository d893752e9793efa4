// What a worker of guest JavaScript is sent: {program: {ring}} once, from a kernel; or {message} after {message}, from an owner.

export class Messages {
  #begin;
  #waiting = null;
  #arrived = [];
  /** What it is for: {ring}, or {messages}, a function for the messages. */
  program = new Promise((resolve) => { this.#begin = resolve; });

  take({ program, message }) {
    if (program !== undefined) return this.#begin(program);
    this.#begin({ messages: (milliseconds) => this.#next(milliseconds) });
    this.#arrived.push(message);
    this.#waiting?.();
  }

  // The next message, or null if none comes for so long.
  async #next(milliseconds) {
    let timer;
    if (this.#arrived.length === 0) {
      await new Promise((resolve) => {
        this.#waiting = resolve;
        if (milliseconds !== Infinity) timer = setTimeout(resolve, Math.min(milliseconds, 0x7fffffff));
      });
    }
    this.#waiting = null;
    clearTimeout(timer);
    return this.#arrived.shift() ?? null;
  }
}
