// Bytes and text, as in every realm of ours.
'use strict';

module.exports = require('belljar/bytes');
