// What the language has and this engine has not.
(function (uncurry) {
  'use strict';

  const define = (object, name, value) => Reflect.defineProperty(object, name, { __proto__: null, value, writable: true, enumerable: false, configurable: true });

  // One thread: every access is atomic. Nobody could wake one who waits.
  if (globalThis.Atomics === undefined) {
    const tag = uncurry(Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag).get);
    const INTEGERS = /^(?:Big)?(?:Int|Uint)\d+Array$/;
    const check = (array, index) => {
      if (!INTEGERS.test(tag(array))) throw new TypeError('[object Array] is not an integer typed array.');
      index = Math.trunc(+index || 0);
      if (index < 0 || index >= array.length) throw new RangeError('Invalid atomic access index');
      return index;
    };
    const whole = (array, value) => (tag(array).startsWith('Big') ? BigInt(value) : Math.trunc(+value || 0));
    const change = (name, made) => {
      define(atomics, name, { [name](array, index, value) {
        index = check(array, index);
        value = whole(array, value);
        const old = array[index];
        array[index] = made(old, value);
        return old;
      } }[name]);
    };
    const atomics = {};
    change('add', (a, b) => a + b);
    change('sub', (a, b) => a - b);
    change('and', (a, b) => a & b);
    change('or', (a, b) => a | b);
    change('xor', (a, b) => a ^ b);
    change('exchange', (_, b) => b);
    const rest = {
      load: (array, index) => array[check(array, index)],
      store(array, index, value) { index = check(array, index); value = whole(array, value); array[index] = value; return value; },
      compareExchange(array, index, expected, value) {
        index = check(array, index);
        const old = array[index], wanted = new array.constructor([whole(array, expected)])[0];
        if (old === wanted) array[index] = whole(array, value);
        return old;
      },
      isLockFree: (size) => size === 1 || size === 2 || size === 4 || size === 8,
      notify(array, index) { check(array, index); return 0; },
      wait() { throw new TypeError('Atomics.wait cannot be called in this context'); },
    };
    for (const name of Object.keys(rest)) define(atomics, name, rest[name]);
    Reflect.defineProperty(atomics, Symbol.toStringTag, { __proto__: null, value: 'Atomics', configurable: true });
    define(globalThis, 'Atomics', atomics);
  }
})
