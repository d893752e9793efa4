// Scripts and modules of a run, which import nothing: what they use is in the prefix.
'use strict';

const { PromiseReject, TypeError } = primordials;

const refuse = (name) => new TypeError(`can't import '${name}': put libraries into the prefix, and use what it defines`);

module.exports = {
  // Both call `compiled` once what they throw is no syntax error any more.
  script(code, name, compiled) {
    if (compiled !== undefined) {
      native.script(code, name, 0, 0, undefined, false);
      compiled();
    }
    return native.script(code, name, 0, 0, undefined, true)[0];
  },
  // [namespace, promise]
  module(code, name, compiled) {
    const { 0: module, 1: requests } = native.compileModule(code, name, 0, 0, undefined);
    compiled?.();
    if (requests.length > 0) throw refuse(requests[0][0]);
    native.instantiate(module);
    const promise = native.evaluate(module);
    return [native.namespace(module), promise];
  },
  hooks: {
    import: (_id, request) => PromiseReject(refuse(request)),
    importMeta() {},
  },
};
