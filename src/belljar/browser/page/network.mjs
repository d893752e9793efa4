// What a sandbox in a page may fetch. The guest's requests (belljar/net/wire.py) are decided here, then done by fetch().
//
// A page can reach only what its browser lets it: other origins must allow this one by CORS, and there is no TCP.
import { frame, toBytes, unframe } from "./wire.mjs";

const WINDOW = 1 << 20;
const CHUNK = 256 << 10;
const BODY_MAX = 64 << 20;
const REDIRECTS = 20;
const FORBIDDEN = new Set(["host", "connection", "content-length", "transfer-encoding", "accept-encoding", "te", "upgrade", "keep-alive"]);

/**
 * @param grant  an array of host patterns ("api.example.com", "*.example.com", with ":port" if it is not the scheme's own), or
 *               {allow: [...], policy: async (request) => boolean | Response}: the function is asked for what the list allows
 *               (or for everything, without a list), and may answer by itself. `redirects: true` lets the browser follow
 *               redirects, whose targets nobody can check before: a page is not told where they lead.
 */
export function checkNetwork(grant) {
  if (grant === undefined || grant === null) return null;
  const { allow, policy, redirects = false } = Array.isArray(grant) ? { allow: grant } : grant;
  if (allow !== undefined && !(Array.isArray(allow) && allow.every((each) => typeof each === "string" && each))) {
    throw new TypeError("network: `allow` must be an array of host names");
  }
  if (policy !== undefined && typeof policy !== "function") throw new TypeError("network: `policy` must be a function");
  if (allow === undefined && policy === undefined) throw new TypeError("network: give `allow`, or `policy`, or both");
  return { allow: allow?.map(pattern), policy, redirects };
}

function pattern(text) {
  const match = /^(\*\.)?([a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])(?::(\d{1,5}))?$/i.exec(text);
  if (!match) throw new TypeError(`network: ${JSON.stringify(text)} is no host name`);
  const [, any, host, port] = match;
  return { any: any !== undefined, host: host.toLowerCase(), port: port ?? null };
}

function allows(patterns, url) {
  const host = url.hostname.toLowerCase().replace(/\.$/, "");
  return patterns.some((each) => {
    if ((each.port ?? "") !== url.port) return false;
    return each.any ? host.endsWith(`.${each.host}`) : host === each.host;
  });
}

export class Broker {
  #grant;
  #send;
  #event;
  #requests = new Map();

  /** @param send (Uint8Array) => void: a frame for the guest */
  constructor(grant, send, event) {
    this.#grant = grant;
    this.#send = (message) => send(frame(message));
    this.#event = event;
  }

  receive(framed) {
    const [kind, id, ...rest] = unframe(framed);
    const request = this.#requests.get(id);
    if (kind === "fetch") this.#open(id, rest);
    else if (kind === "dial" || kind === "resolve") {
      this.#failed(id, "denied", "a page has no TCP and no DNS: only http and https requests leave this sandbox");
    } else if (kind === "data") request?.take(rest[0]);
    else if (kind === "end") request?.takeEnd();
    else if (kind === "grant") request?.grant(rest[0]);
    else if (kind === "drop") request?.drop();
  }

  /** A request of `sandbox.js`: decided as any other. */
  async fetch(text, { method, headers, body }) {
    const url = new URL(text);
    const sent = new Headers(headers.filter(([name]) => !FORBIDDEN.has(name.toLowerCase())));
    const id = Symbol("request");
    const request = new Request_(id, () => {}, () => this.#requests.delete(id));
    this.#requests.set(id, request);
    try {
      const response = await this.#follow(request, { method, headers: sent, body }, url, REDIRECTS);
      const data = await request.race(whole(response));
      return { status: response.status, statusText: response.statusText, headers: [...response.headers], body: data, url: response.url || url.href };
    } finally {
      this.#requests.delete(id);
    }
  }

  close() {
    for (const request of this.#requests.values()) request.drop();
  }

  #failed(id, kind, text) {
    this.#send(["failed", id, kind, text]);
  }

  #open(id, [method, text, headers, body, redirects, timeout]) {
    const request = new Request_(id, this.#send, () => this.#requests.delete(id));
    this.#requests.set(id, request);
    this.#carry(request, { method, text, headers, body, redirects, timeout }).catch((error) => {
      if (this.#requests.delete(id)) this.#failed(id, error.kind ?? "connect", error.message);
    });
  }

  async #carry(request, { method, text, headers, body, redirects, timeout }) {
    const url = new URL(text);
    const sent = new Headers();
    for (const [name, value] of headers) {
      const field = latin1(name).toLowerCase();
      if (!FORBIDDEN.has(field)) sent.append(field, latin1(value));
    }
    const data = body ? await request.body() : undefined;
    if (timeout > 0) setTimeout(() => request.abort("timeout", `no answer within ${timeout} seconds`), timeout * 1000);
    await request.answer(await this.#follow(request, { method, headers: sent, body: data }, url, redirects));
  }

  // Ask for a URL, and for those it redirects to, each decided before it is asked for.
  async #follow(request, asked, url, redirects) {
    for (;;) {
      const answer = await this.#decide({ ...asked, url: url.href }, url);
      const response = answer ?? await request.race(this.#fetch(request, asked, url, "manual"));
      if (response.type === "opaqueredirect") {
        if (this.#grant.redirects && redirects > 0) return request.race(this.#fetch(request, asked, url, "follow"));
        throw failure("denied", "the server redirects, and a page can't see where to before it is asked for: request the target itself");
      }
      const location = [301, 302, 303, 307, 308].includes(response.status) ? response.headers.get("location") : null;
      if (location === null || redirects-- <= 0) return response;
      const target = new URL(location, url);
      if (target.origin !== url.origin) for (const name of ["authorization", "cookie"]) asked.headers.delete(name);
      if (response.status === 303 || (response.status < 303 && asked.method === "POST")) {
        asked = { ...asked, method: "GET", body: undefined };
      }
      url = target;
    }
  }

  async #fetch(request, { method, headers, body }, url, redirect) {
    try {
      return await fetch(url, {
        method, headers, body: method === "GET" || method === "HEAD" ? undefined : body, redirect,
        credentials: "omit", referrerPolicy: "no-referrer", cache: "no-store", signal: request.signal,
      });
    } catch (error) {
      throw failure("connect", `${error.message}. A page reaches only servers that allow its origin (CORS)`);
    }
  }

  // Undefined: it may be fetched. A Response: that is the answer. Throws if it is denied.
  async #decide(asked, url) {
    const { allow, policy } = this.#grant ?? {};
    let verdict = this.#grant !== null && ["http:", "https:"].includes(url.protocol);
    if (verdict && allow !== undefined) verdict = allows(allow, url);
    if (verdict && policy !== undefined) {
      try {
        verdict = await policy(asked);
      } catch (error) {
        this.#event({ type: "network", url: url.href, method: asked.method, allowed: false, error: String(error) });
        throw failure("denied", "the policy failed, so the request is denied");
      }
    }
    const allowed = verdict === true || verdict instanceof Response;
    this.#event({ type: "network", url: url.href, method: asked.method, allowed });
    if (!allowed) {
      throw failure("denied", this.#grant === null ? "this sandbox was granted no network" : `${url.host} is not granted`);
    }
    return verdict instanceof Response ? verdict : undefined;
  }
}

const failure = (kind, text) => Object.assign(new Error(text), { kind });
const latin1 = (bytes) => String.fromCharCode(...bytes);

async function whole(response) {
  const parts = [];
  let size = 0;
  for await (const data of response.body ?? []) {
    parts.push(data);
    size += data.length;
    if (size > BODY_MAX) throw failure("too-large", `a page takes at most ${BODY_MAX} bytes`);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

class Request_ {
  #send;
  #done;
  #room = WINDOW;
  #news = null;
  #parts = [];
  #size = 0;
  #ended = false;
  #abort = new AbortController();
  #failure = null;

  constructor(id, send, done) {
    this.id = id;
    this.#send = send;
    this.#done = done;
  }

  get signal() {
    return this.#abort.signal;
  }

  take(data) {
    this.#size += data.length;
    if (this.#size > BODY_MAX) return this.abort("too-large", `a page sends at most ${BODY_MAX} bytes`);
    this.#parts.push(data);
    this.#send(["grant", this.id, data.length]);
  }

  takeEnd() {
    this.#ended = true;
    this.#wake();
  }

  async body() {
    while (!this.#ended && !this.signal.aborted) await this.#wait();
    this.#check();
    return new Uint8Array(await new Blob(this.#parts).arrayBuffer());
  }

  grant(count) {
    this.#room += count;
    this.#wake();
  }

  abort(kind, text) {
    this.#failure ??= failure(kind, text);
    this.#abort.abort();
    this.#wake();
  }

  drop() {
    this.abort("reset", "nobody waits for it any more");
    this.#done();
  }

  #check() {
    if (this.#failure !== null) throw this.#failure;
  }

  #wait() {
    return new Promise((resolve) => { this.#news = resolve; });
  }

  #wake() {
    this.#news?.();
    this.#news = null;
  }

  async race(response) {
    try {
      return await response;
    } catch (error) {
      this.#check();
      throw error;
    }
  }

  async answer(response) {
    const lines = [`HTTP/1.1 ${response.status} ${response.statusText}`];
    for (const [name, value] of response.headers) {
      if (!["content-encoding", "content-length", "transfer-encoding"].includes(name)) lines.push(`${name}: ${value}`);
    }
    this.#send(["opened", this.id, { url: response.url, http: "1.1" }, toBytes(`${lines.join("\r\n")}\r\n\r\n`)]);
    for await (const data of response.body ?? []) {
      for (let at = 0; at < data.length;) {
        while (this.#room <= 0 && !this.signal.aborted) await this.#wait();
        this.#check();
        const piece = data.subarray(at, at + Math.min(CHUNK, this.#room));
        this.#room -= piece.length;
        at += piece.length;
        this.#send(["data", this.id, piece]);
      }
    }
    this.#send(["end", this.id]);
  }
}
