// async_hooks: the stack of what is being run for whom.
'use strict';

const { ArrayPrototypePush, Float64Array, SafeFinalizationRegistry, Uint32Array } = primordials;
const loop = require('belljar/node/loop');

const CHECK = 6, STACK = 7; // of async_hook_fields
const EXECUTION = 0, TRIGGER = 1, COUNTER = 2, DEFAULT_TRIGGER = 3; // of async_id_fields

const async_hook_fields = new Uint32Array(9);
const async_id_fields = new Float64Array(4);
const async_ids_stack = new Float64Array(32);
const execution_async_resources = [];
const deeper = []; // of the stack, what does not fit into the array
async_hook_fields[CHECK] = 1;
async_id_fields[COUNTER] = 1;
async_id_fields[DEFAULT_TRIGGER] = -1;

let emit; // Node's functions, once it has given them
const gone = [];

function pushAsyncContext(id, trigger) {
  const depth = async_hook_fields[STACK];
  if (depth * 2 >= async_ids_stack.length) {
    deeper[depth] = [async_id_fields[EXECUTION], async_id_fields[TRIGGER]];
  } else {
    async_ids_stack[2 * depth] = async_id_fields[EXECUTION];
    async_ids_stack[2 * depth + 1] = async_id_fields[TRIGGER];
  }
  async_hook_fields[STACK]++;
  async_id_fields[EXECUTION] = id;
  async_id_fields[TRIGGER] = trigger;
}

function popAsyncContext() {
  if (async_hook_fields[STACK] === 0) return false;
  const depth = --async_hook_fields[STACK];
  const far = depth * 2 >= async_ids_stack.length;
  async_id_fields[EXECUTION] = far ? deeper[depth][0] : async_ids_stack[2 * depth];
  async_id_fields[TRIGGER] = far ? deeper[depth][1] : async_ids_stack[2 * depth + 1];
  execution_async_resources.length = depth;
  return depth > 0;
}

function queueDestroyAsyncId(id) {
  if (ArrayPrototypePush(gone, id) > 1) return;
  native.enqueueMicrotask(() => loop.enter(() => {
    while (gone.length > 0) emit?.destroy(gone.shift());
  }));
}

const collected = new SafeFinalizationRegistry(({ id, destroyed }) => { if (!destroyed?.destroyed) queueDestroyAsyncId(id); });

module.exports = {
  newId: () => ++async_id_fields[COUNTER],
  async_wrap: {
    setupHooks(hooks) { emit = hooks; },
    setCallbackTrampoline() {},
    setPromiseHooks() {}, // promises are no resources of theirs here; AsyncLocalStorage does without
    getPromiseHooks: () => [undefined, undefined, undefined, undefined],
    registerDestroyHook(object, id, destroyed) { collected.register(object, { id, destroyed }); },
    pushAsyncContext,
    popAsyncContext,
    clearAsyncIdStack() {
      async_hook_fields[STACK] = async_id_fields[EXECUTION] = async_id_fields[TRIGGER] = 0;
      execution_async_resources.length = 0;
    },
    executionAsyncResource: (index) => execution_async_resources[index],
    queueDestroyAsyncId,
    async_hook_fields, async_id_fields, async_ids_stack, execution_async_resources,
  },
};
