// structuredClone: V8 does it by writing a value down and reading it again; here it is copied, part by part.
(function (typeOf) {
  'use strict';

  const uncurry = Function.prototype.bind.bind(Function.prototype.call);
  const { defineProperty, getOwnPropertyDescriptor, getPrototypeOf } = Reflect;
  const { isArray } = Array;
  const keysOf = Object.keys;
  const getter = (of, name) => uncurry(getOwnPropertyDescriptor(of, name).get);
  const view = getPrototypeOf(Uint8Array.prototype);
  const bufferOf = getter(view, 'buffer'), offsetOf = getter(view, 'byteOffset'), sizeOf = getter(view, 'length'), tagOf = getter(view, Symbol.toStringTag);
  const data = { buffer: getter(DataView.prototype, 'buffer'), offset: getter(DataView.prototype, 'byteOffset'), size: getter(DataView.prototype, 'byteLength') };
  const sliceBuffer = uncurry(ArrayBuffer.prototype.slice), transfer = uncurry(ArrayBuffer.prototype.transfer);
  const valueOf = {};
  for (const made of [Number, Boolean, String, BigInt]) valueOf[`${made.name}Object`] = uncurry(made.prototype.valueOf);
  const getTime = uncurry(Date.prototype.getTime);
  const sourceOf = getter(RegExp.prototype, 'source'), flagsOf = getter(RegExp.prototype, 'flags');
  const mapEach = uncurry(Map.prototype.forEach), mapSet = uncurry(Map.prototype.set), mapGet = uncurry(Map.prototype.get), mapHas = uncurry(Map.prototype.has);
  const setEach = uncurry(Set.prototype.forEach), setAdd = uncurry(Set.prototype.add);
  const arrays = { __proto__: null };
  for (const made of [Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, Float32Array, Float64Array, BigInt64Array, BigUint64Array]) arrays[made.name] = made;
  const errors = { __proto__: null };
  for (const made of [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError]) errors[made.name] = made;
  const LikeMap = Map, LikeSet = Set, LikeDate = Date, LikeRegExp = RegExp, LikeError = Error, LikeView = DataView, boxed = Object;

  const ERROR_PARTS = ['message', 'stack', 'cause'];
  const refuse = (what) => { throw new LikeError(`${what} could not be cloned.`); };
  const put = (object, key, value) => defineProperty(object, key, { __proto__: null, value, writable: true, enumerable: true, configurable: true });

  function copy(value, seen) {
    switch (typeof value) {
      case 'symbol': return refuse(String(value));
      case 'function': return refuse(`${value}`);
      case 'object': if (value !== null) break; // falls through
      default: return value;
    }
    if (mapHas(seen, value)) return mapGet(seen, value);
    const keep = (made) => { mapSet(seen, value, made); return made; };
    const array = tagOf(value);
    if (array !== undefined) {
      if (arrays[array] === undefined) return refuse(`#<${array}>`);
      return keep(new arrays[array](copy(bufferOf(value), seen), offsetOf(value), sizeOf(value)));
    }
    const kind = typeOf(value);
    switch (kind) {
      case 'Date': return keep(new LikeDate(getTime(value)));
      case 'RegExp': return keep(new LikeRegExp(sourceOf(value), flagsOf(value)));
      case 'NumberObject': case 'BooleanObject': case 'StringObject': case 'BigIntObject': return keep(boxed(valueOf[kind](value)));
      case 'ArrayBuffer': return keep(sliceBuffer(value, 0));
      case 'DataView': return keep(new LikeView(copy(data.buffer(value), seen), data.offset(value), data.size(value)));
      case 'Map': {
        const made = keep(new LikeMap()), entries = [];
        mapEach(value, (item, key) => { put(entries, entries.length, [key, item]); });
        for (let i = 0; i < entries.length; i++) mapSet(made, copy(entries[i][0], seen), copy(entries[i][1], seen));
        return made;
      }
      case 'Set': {
        const made = keep(new LikeSet()), items = [];
        setEach(value, (item) => { put(items, items.length, item); });
        for (let i = 0; i < items.length; i++) setAdd(made, copy(items[i], seen));
        return made;
      }
      case 'NativeError': {
        const made = keep(new (errors[value.name] ?? LikeError)());
        for (let i = 0; i < ERROR_PARTS.length; i++) {
          const name = ERROR_PARTS[i], found = getOwnPropertyDescriptor(value, name);
          if (found !== undefined && 'value' in found) {
            const item = name === 'cause' ? copy(found.value, seen) : `${found.value}`;
            defineProperty(made, name, { __proto__: null, value: item, writable: true, configurable: true, enumerable: false });
          }
        }
        return made;
      }
      case undefined: case 'ModuleNamespaceObject': case 'ArgumentsObject': break;
      default: return refuse(kind === 'Proxy' ? '#<Object>' : `#<${kind}>`);
    }
    const made = keep(isArray(value) ? new Array(value.length) : {});
    const keys = keysOf(value);
    for (let i = 0; i < keys.length; i++) put(made, keys[i], copy(value[keys[i]], seen));
    return made;
  }

  // (value, [array buffers to transfer])
  return (value, moved) => {
    const seen = new LikeMap();
    for (let i = 0; i < moved.length; i++) mapSet(seen, moved[i], sliceBuffer(moved[i], 0));
    const made = copy(value, seen);
    for (let i = 0; i < moved.length; i++) transfer(moved[i]); // the original is empty from now on
    return made;
  };
})
