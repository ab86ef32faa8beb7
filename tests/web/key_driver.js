// A driver that can only press and release the arrow keys, ten times a second, as a practised person might.
// It looks at the optimal line a little ahead, and drives at a share of the line's speed.
window.keyDriver = (share = 0.86) => {
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
    const racing = window.hotlap.state().racing;
    if (!racing) {
      for (const code of ['ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown']) press(code, false);
      last = -100;
      return;
    }
    if (stage.tick - last < 6) return;
    last = stage.tick;
    const { line } = track;
    const { pose } = stage.cars[0];
    const arc = stage.world.read.arc_m(0);
    const spacing = track.length_m / line.x.length;
    const at = (metres) => Math.floor((arc + metres) / spacing) % line.x.length;
    const aim = at(5 + 0.42 * pose.speed);
    const wanted = Math.atan2(line.y[aim] - pose.y, line.x[aim] - pose.x);
    let turn = wanted - pose.yaw - 0.10 * stage.world.read.yaw_radps(0);
    turn -= 2 * Math.PI * Math.round(turn / (2 * Math.PI));
    press('ArrowLeft', turn > 0.045);
    press('ArrowRight', turn < -0.045);
    let target = Infinity;
    for (let ahead = 0; ahead < 90; ahead += 4) {
      const there = share * line.speed[at(ahead)];
      target = Math.min(target, Math.sqrt(there * there + 2 * 8.5 * Math.max(0, ahead - 0.1 * pose.speed)));
    }
    press('ArrowUp', pose.speed < target - 0.3);
    press('ArrowDown', pose.speed > target + 1.5);
  };
  const timer = setInterval(drive, 4);
  return () => clearInterval(timer);
};
