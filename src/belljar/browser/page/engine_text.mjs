// Bytes as text and back in the encodings of Node's buffers, by its rules: what is wrong is left out. And URLs as Node keeps them.

const ASCII = 0;
const BASE64 = 2;
const LATIN1 = 4;
const HEX = 5;
const BASE64URL = 7;
const NONE = 0xffffffff; // Node's word for a part that a URL has not
const SCHEMES = ["http:", " ", "https:", "ws:", "ftp:", "wss:", "file:"]; // by Node's numbers; " ": any other
const SETTERS = ["protocol", "host", "hostname", "port", "username", "password", "pathname", "search", "hash", "href"];
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** The text of some bytes. */
export function encodeText(bytes, encoding) {
  switch (encoding) {
    case ASCII: return latin1(bytes.map((byte) => byte & 127));
    case LATIN1: return latin1(bytes);
    case BASE64: return btoa(latin1(bytes));
    case BASE64URL: return btoa(latin1(bytes)).replace(/=+$/, "").replaceAll("+", "-").replaceAll("/", "_");
    case HEX: return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
    default: return decoder.decode(bytes);
  }
}

/** The bytes of a text. */
export function decodeText(text, encoding) {
  switch (encoding) {
    case ASCII: case LATIN1: return Uint8Array.from({ length: text.length }, (_, i) => text.charCodeAt(i));
    case BASE64: case BASE64URL: {
      const [before] = text.split("=", 1);
      let letters = before.replaceAll("-", "+").replaceAll("_", "/").replace(/[^A-Za-z0-9+/]/g, "");
      if (letters.length % 4 === 1) letters = letters.slice(0, -1);
      return decodeText(atob(letters), LATIN1);
    }
    case HEX: {
      const [digits] = /^(?:[0-9a-fA-F]{2})*/.exec(text);
      return Uint8Array.from({ length: digits.length / 2 }, (_, i) => parseInt(digits.slice(2 * i, 2 * i + 2), 16));
    }
    default: return encoder.encode(text);
  }
}

function latin1(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return text;
}

/** Where a needle is, from `at` on or back from there, in steps of a unit of bytes; -1: nowhere. */
export function findBytes(bytes, needle, at, forward, unit) {
  for (; at >= 0 && at + needle.length <= bytes.length; at += forward ? unit : -unit) {
    let same = 0;
    while (same < needle.length && bytes[at + same] === needle[same]) same++;
    if (same === needle.length) return at;
  }
  return -1;
}

/** The nine numbers that Node's library keeps of a URL, and its href; null if it is none. */
export function parseUrl(text, base) {
  return URL.canParse(text, base) ? describe(new URL(text, base)) : null;
}

/** The same after one part was set; null if there is no such URL. */
export function updateUrl(href, action, value) {
  if (!URL.canParse(href)) return null;
  const url = new URL(href);
  try {
    url[SETTERS[action]] = value;
  } catch {
    return null; // of href alone
  }
  return describe(url);
}

// protocol_end username_end host_start host_end port pathname_start search_start hash_start scheme_type, as ada counts them:
// https://user:pass@example.com:1234/foo/bar?baz#quux
function describe(url) {
  const { href, protocol, username, password, port, search, hash, pathname } = url;
  const protocolEnd = protocol.length;
  const hashStart = hash || href.endsWith("#") ? href.indexOf("#") : NONE;
  const beforeHash = hashStart === NONE ? href.length : hashStart;
  const question = href.indexOf("?");
  const searchStart = question >= 0 && question < beforeHash ? question : NONE;
  const pathEnd = searchStart === NONE ? beforeHash : searchStart;
  const pathStart = pathEnd - pathname.length;
  const hasHost = href.startsWith("//", protocolEnd) && pathStart > protocolEnd + 1;
  let usernameEnd = protocolEnd;
  let hostStart = protocolEnd;
  let hostEnd = protocolEnd;
  if (hasHost) {
    usernameEnd = hostStart = protocolEnd + 2 + username.length;
    if (password) hostStart += 1 + password.length;
    hostEnd = protocolEnd + 2 + url.host.length - (port ? port.length + 1 : 0);
    if (username || password) hostEnd += (hostStart - protocolEnd - 2) + 1;
  }
  const scheme = SCHEMES.indexOf(protocol);
  const numbers = [protocolEnd, usernameEnd, hostStart, hostEnd, port ? Number(port) : NONE, pathStart, searchStart, hashStart, scheme < 0 ? 1 : scheme];
  const text = encoder.encode(href);
  const made = new Uint8Array(36 + text.length);
  const view = new DataView(made.buffer);
  numbers.forEach((number, i) => view.setUint32(4 * i, number, true));
  made.set(text, 36);
  return made;
}
