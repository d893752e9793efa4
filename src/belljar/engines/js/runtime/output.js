// Where printed text goes: to the owner of a run, or, in a program of the sandbox, to its descriptors.
'use strict';

let sink = native.print;

module.exports = {
  print(stream, text) { sink(stream, text); },
  redirect(made) { sink = made; },
};
