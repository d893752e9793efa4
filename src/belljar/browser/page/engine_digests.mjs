// Digests, at once: a page's own (crypto.subtle) are promises, and what asks for them here can't wait for one.

/** The digest of some bytes; null if there is none of that name. */
export function digest(name, bytes) {
  const make = DIGESTS[name.toLowerCase().replace(/^sha-/, "sha")];
  return make === undefined ? null : make(bytes);
}

const DIGESTS = {
  md5: (bytes) => run(bytes, { block: 64, little: true, state: [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476] }, md5),
  sha1: (bytes) => run(bytes, { block: 64, state: [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0] }, sha1),
  sha224: (bytes) => run(bytes, { block: 64, state: halves(9, 16).filter((_, i) => i % 2 === 1) }, sha256).subarray(0, 28),
  sha256: (bytes) => run(bytes, { block: 64, state: halves(1, 8).filter((_, i) => i % 2 === 0) }, sha256),
  sha384: (bytes) => run(bytes, { block: 128, state: halves(9, 16) }, sha512).subarray(0, 48),
  sha512: (bytes) => run(bytes, { block: 128, state: halves(1, 8) }, sha512),
};

// SHA-2 is made of the fractions of roots of primes, to 64 bits: square roots at the start, cube roots for each round.

function primes(count) {
  const found = [];
  for (let n = 2; found.length < count; n++) if (found.every((prime) => n % prime !== 0)) found.push(n);
  return found;
}

// The first 64 bits of the fraction of a root, found bit by bit.
function fraction(prime, power) {
  const wanted = BigInt(prime) << BigInt(64 * power);
  let root = 0n;
  for (let bit = 1n << 68n; bit > 0n; bit >>= 1n) if ((root | bit) ** BigInt(power) <= wanted) root |= bit;
  return BigInt.asUintN(64, root);
}

const split = (value) => [Number(value >> 32n), Number(value & 0xffffffffn)];
const halves = (first, last) => primes(last).slice(first - 1).flatMap((prime) => split(fraction(prime, 2)));
const ROUNDS = primes(80).flatMap((prime) => split(fraction(prime, 3))); // each as two words
const SINES = Array.from({ length: 64 }, (_, i) => Math.floor(Math.abs(Math.sin(i + 1)) * 2 ** 32));
const SHIFTS = [7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21];

// Pads to whole blocks, has each block mixed into the state, gives the state as bytes.
function run(bytes, { block, state, little = false }, mix) {
  const room = block / 8;
  const padded = new Uint8Array(Math.ceil((bytes.length + 1 + room) / block) * block);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setBigUint64(padded.length - 8, BigInt(bytes.length) * 8n, little);
  const words = Uint32Array.from(state);
  for (let at = 0; at < padded.length; at += block) mix(words, (i) => view.getUint32(at + 4 * i, little));
  const made = new Uint8Array(4 * words.length);
  words.forEach((word, i) => new DataView(made.buffer).setUint32(4 * i, word, little));
  return made;
}

const left = (word, by) => (word << by) | (word >>> (32 - by));
const right = (word, by) => (word >>> by) | (word << (32 - by));

function md5(state, word) {
  let [a, b, c, d] = state;
  for (let i = 0; i < 64; i++) {
    const round = i >> 4;
    const [mixed, at] = [
      [(b & c) | (~b & d), i], [(d & b) | (~d & c), 5 * i + 1], [b ^ c ^ d, 3 * i + 5], [c ^ (b | ~d), 7 * i],
    ][round];
    const next = (b + left((a + mixed + SINES[i] + word(at % 16)) | 0, SHIFTS[4 * round + (i % 4)])) | 0;
    [a, d, c, b] = [d, c, b, next];
  }
  [a, b, c, d].forEach((value, i) => { state[i] += value; });
}

function sha1(state, word) {
  const w = new Uint32Array(80);
  for (let i = 0; i < 80; i++) w[i] = i < 16 ? word(i) : left(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
  let [a, b, c, d, e] = state;
  for (let i = 0; i < 80; i++) {
    const mixed = i < 20 ? (b & c) | (~b & d) : i >= 40 && i < 60 ? (b & c) | (b & d) | (c & d) : b ^ c ^ d;
    const constant = [0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6][Math.floor(i / 20)];
    const next = (left(a, 5) + mixed + e + constant + w[i]) | 0;
    [e, d, c, b, a] = [d, c, left(b, 30), a, next];
  }
  [a, b, c, d, e].forEach((value, i) => { state[i] += value; });
}

function sha256(state, word) {
  const w = new Uint32Array(64);
  for (let i = 0; i < 64; i++) {
    if (i < 16) w[i] = word(i);
    else {
      const [x, y] = [w[i - 15], w[i - 2]];
      w[i] = w[i - 16] + (right(x, 7) ^ right(x, 18) ^ (x >>> 3)) + w[i - 7] + (right(y, 17) ^ right(y, 19) ^ (y >>> 10));
    }
  }
  let [a, b, c, d, e, f, g, h] = state;
  for (let i = 0; i < 64; i++) {
    const one = (h + (right(e, 6) ^ right(e, 11) ^ right(e, 25)) + ((e & f) ^ (~e & g)) + ROUNDS[2 * i] + w[i]) | 0;
    const two = ((right(a, 2) ^ right(a, 13) ^ right(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((value, i) => { state[i] += value; });
}

// 64-bit words as two halves: BigInts are ten times slower.

const turned = (a, b, by) => (by < 32 ? (a >>> by) | (b << (32 - by)) : (b >>> (by - 32)) | (a << (64 - by))); // of (a, b) the half a
const mixed = (a, b, [one, two, three]) => turned(a, b, one) ^ turned(a, b, two) ^ turned(a, b, three);

function sha512(state, word) {
  const w = new Uint32Array(160);
  for (let i = 0; i < 32; i++) w[i] = word(i);
  for (let i = 32; i < 160; i += 2) {
    const [xh, xl, yh, yl] = [w[i - 30], w[i - 29], w[i - 4], w[i - 3]];
    const low = w[i - 31] + w[i - 13] + ((turned(xl, xh, 1) ^ turned(xl, xh, 8) ^ ((xl >>> 7) | (xh << 25))) >>> 0) +
      ((turned(yl, yh, 19) ^ turned(yl, yh, 61) ^ ((yl >>> 6) | (yh << 26))) >>> 0);
    w[i] = w[i - 32] + w[i - 14] + (turned(xh, xl, 1) ^ turned(xh, xl, 8) ^ (xh >>> 7)) + (turned(yh, yl, 19) ^ turned(yh, yl, 61) ^ (yh >>> 6)) + carry(low);
    w[i + 1] = low;
  }
  const v = Uint32Array.from(state); // a to h, the high half of each first
  for (let i = 0; i < 160; i += 2) {
    const [eh, el, ah, al] = [v[8], v[9], v[0], v[1]];
    const lowOne = v[15] + (mixed(el, eh, [14, 18, 41]) >>> 0) + (((el & v[11]) ^ (~el & v[13])) >>> 0) + ROUNDS[i + 1] + w[i + 1];
    const highOne = v[14] + mixed(eh, el, [14, 18, 41]) + ((eh & v[10]) ^ (~eh & v[12])) + ROUNDS[i] + w[i] + carry(lowOne);
    const lowTwo = (mixed(al, ah, [28, 34, 39]) >>> 0) + (((al & v[3]) ^ (al & v[5]) ^ (v[3] & v[5])) >>> 0);
    const highTwo = mixed(ah, al, [28, 34, 39]) + ((ah & v[2]) ^ (ah & v[4]) ^ (v[2] & v[4])) + carry(lowTwo);
    v.copyWithin(2, 0, 14);
    const lowE = v[9] + (lowOne >>> 0);
    v[8] += highOne + carry(lowE);
    v[9] = lowE;
    const lowA = (lowOne >>> 0) + (lowTwo >>> 0);
    v[0] = highOne + highTwo + carry(lowA);
    v[1] = lowA;
  }
  for (let i = 0; i < 16; i += 2) {
    const low = state[i + 1] + v[i + 1];
    state[i] += v[i] + carry(low);
    state[i + 1] = low;
  }
}

const carry = (sum) => Math.floor(sum / 2 ** 32);
