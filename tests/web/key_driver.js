// A driver that can only press and release the arrow keys, ten times a second, as a practised person might.
// It looks at the optimal line a little ahead, and drives at a fraction of the line's speed.
window.keyDriver = (fraction = 0.8) => {
  const { app } = window.hotlap;
  const held = {};
  const press = (code, isDown) => {
    if (Boolean(held[code]) === isDown) return;
    held[code] = isDown;
    window.dispatchEvent(new KeyboardEvent(isDown ? 'keydown' : 'keyup', { code, key: code, bubbles: true }));
  };
  let last = -100;
  const drive = () => {
    const { stage, track } = app;
    if (stage.tick < last) last = -100;
    if (stage.tick - last < 6) return;
    last = stage.tick;
    const { line } = track;
    const { pose } = stage.cars[0];
    const arc = stage.world.read.arc_m(0);
    const spacing = track.length_m / line.x.length;
    const at = (metres) => Math.floor((arc + metres) / spacing) % line.x.length;
    const ahead = 7 + 0.44 * pose.speed;
    const aim = at(ahead);
    const node = Math.floor((arc + ahead) / track.stepM) % track.numNodes;
    // Some way off the line's edge of the road, as a careful person drives.
    const x = 0.75 * line.x[aim] + 0.25 * track.centre.x[node];
    const y = 0.75 * line.y[aim] + 0.25 * track.centre.y[node];
    let off = Math.atan2(y - pose.y, x - pose.x) - pose.yaw - Math.atan2(pose.left, Math.max(pose.forward, 2));
    off -= 2 * Math.PI * Math.round(off / (2 * Math.PI));
    const bend = ((2 * Math.sin(off)) / Math.max(4, Math.hypot(x - pose.x, y - pose.y))) * Math.max(pose.speed, 3);
    const missing = bend - stage.world.read.yaw_radps(0);
    const slack = 0.1 * (1 + 0.3 * Math.abs(bend));
    press('ArrowLeft', missing > slack);
    press('ArrowRight', missing < -slack);
    let target = Infinity;
    for (let metres = 0; metres < 110; metres += 4) {
      const there = fraction * line.speed[at(metres)];
      target = Math.min(target, Math.sqrt(there * there + 2 * 5.3 * Math.max(0, metres - 0.1 * pose.speed)));
    }
    press('ArrowUp', pose.speed < target - 0.3);
    press('ArrowDown', pose.speed > target + 1.5);
  };
  // Before the controls are read, tick by tick: so the drive is the same however fast frames come.
  const read = app.controls.read.bind(app.controls);
  app.controls.read = (...given) => {
    drive();
    return read(...given);
  };
};
