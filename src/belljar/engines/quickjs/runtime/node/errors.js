// What files shared with V8's programs use of their stacks: this engine shows none of our own calls.
'use strict';

module.exports = { deeply: (run) => run() };
