// Scripts and modules of a run: the engine's own.
'use strict';

module.exports = { script: native.script, module: native.module };
