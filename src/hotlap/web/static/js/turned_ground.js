// The ground under a picture that turns. Turning every pixel of it costs a machine without a graphics card most of a
// frame; where frames come late, the ground is turned in half the pixels, and the cars on it stay sharp.

const LOOK_FRAMES = 50; // after which frame times are looked at again
const SLOW_FRAME_MS = 20;

export class TurnedGround {
  constructor() {
    this.numFrames = 0;
    this.isSlow = false;
    this.small = null;
  }

  /** Look now and then whether frames of a turned picture come late; `frames` are the newest frame times (ms). */
  watch(frames, isTurned) {
    this.numFrames = isTurned ? this.numFrames + 1 : 0;
    if (!isTurned) this.isSlow = false; // a new choice of camera, a new look
    if (this.isSlow || !this.numFrames || this.numFrames % LOOK_FRAMES) return;
    const latest = frames.slice(-LOOK_FRAMES).sort((one, other) => one - other);
    this.isSlow = latest[LOOK_FRAMES >> 1] > SLOW_FRAME_MS;
  }

  draw(context, picture, camera) {
    if (!camera.turn || !this.isSlow) {
      picture.draw(context, camera);
      return;
    }
    const [width, height] = [Math.ceil(camera.width / 2), Math.ceil(camera.height / 2)];
    if (this.small?.canvas.width !== width || this.small.canvas.height !== height) this.renew(width, height);
    picture.draw(this.small, camera.atHalf());
    context.imageSmoothingEnabled = false; // two by two pixels of each: a plain copy, and no second blur
    context.drawImage(this.small.canvas, 0, 0, 2 * width, 2 * height);
    context.imageSmoothingEnabled = true;
  }

  renew(width, height) {
    const canvas = document.createElement('canvas');
    Object.assign(canvas, { width, height });
    this.small = canvas.getContext('2d', { alpha: false });
  }
}
