// performance.now, to the millisecond and no finer: enough to measure, too coarse to time other things by.
'use strict';

const { DateNow, MathFloor } = primordials;

let origin = 0;
let epoch = 0;

module.exports = {
  now: () => MathFloor(native.now()) - origin,
  timeOrigin: () => epoch,
  restart() {
    origin = MathFloor(native.now());
    epoch = DateNow();
  },
};
