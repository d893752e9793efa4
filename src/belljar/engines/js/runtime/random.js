// Math.random of our own (xoshiro128**): V8's can't be seeded anew, and all forks of one process would share it.
'use strict';

const { MathImul, ObjectDefineProperty, Uint32Array } = primordials;

let a = 1, b = 2, c = 3, d = 4;

function next() {
  const product = MathImul(b, 5);
  const result = MathImul((product << 7) | (product >>> 25), 9);
  const t = b << 9;
  c ^= a;
  d ^= b;
  b ^= c;
  a ^= d;
  c ^= t;
  d = (d << 11) | (d >>> 21);
  return result >>> 0;
}

const { random } = { random() { return ((next() >>> 5) * 67108864 + (next() >>> 6)) / 9007199254740992; } };
ObjectDefineProperty(Math, 'random', { __proto__: null, value: random, writable: true, enumerable: false, configurable: true });

module.exports = {
  reseed() {
    const seed = new Uint32Array(4);
    native.random(seed);
    a = seed[0] | 1;
    b = seed[1] | 0;
    c = seed[2] | 0;
    d = seed[3] | 0;
  },
};
