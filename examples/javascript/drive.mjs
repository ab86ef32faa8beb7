// Drive a lap over the bridge from plain Node.js (18 or later), without packages.
//
// Start a bridge with `hotlap bridge`, then: node drive.mjs [ws://127.0.0.1:9876]

import { createHash, randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { pathToFileURL } from 'node:url';

// Indices of the observation: rays from right to left, then speed.
const [FIRST_RAY, AHEAD, LAST_RAY, SPEED] = [0, 4, 8, 9];
const [TEXT, CLOSE, PING, PONG] = [1, 8, 9, 10]; // kinds of WebSocket frames

const clamp = (value, low, high) => Math.max(low, Math.min(high, value));

// Steer to the side with more room; the more room ahead, the faster.
function drive(observation) {
  let lean = 0;
  for (const side of [1, 2, 3]) lean += observation[FIRST_RAY + side] - observation[LAST_RAY - side];
  const room = Math.min(observation[AHEAD - 1], observation[AHEAD], observation[AHEAD + 1]);
  const margin = 0.1 + room - observation[SPEED];
  return [clamp(2 * lean, -1, 1), clamp(3 * margin, 0, 1), clamp(-4 * margin, 0, 1)]; // steer, throttle, brake
}

// One connection drives one car; every request gets one reply. With a global `WebSocket` (Node 22, browsers, Deno) use
// that instead; this is the part of the WebSocket protocol that a client of the bridge needs.
export class Bridge {
  #socket;
  #bytes = Buffer.alloc(0);
  #waiting = null; // resolves or rejects the pending request
  #isOpen = false;
  #key = randomBytes(16).toString('base64');

  static connect(url) {
    const bridge = new Bridge();
    const { hostname, port, pathname, search } = new URL(url);
    const host = hostname.replace(/^\[|\]$/g, '');
    bridge.#socket = connect({ host, port: Number(port || 80), noDelay: true }, () =>
      bridge.#socket.write(
        `GET ${pathname}${search} HTTP/1.1\r\nHost: ${hostname}:${port || 80}\r\nUpgrade: websocket\r\n` +
          `Connection: Upgrade\r\nSec-WebSocket-Key: ${bridge.#key}\r\nSec-WebSocket-Version: 13\r\n\r\n`,
      ),
    );
    bridge.#socket.on('data', (bytes) => bridge.#read(bytes));
    bridge.#socket.on('error', (error) =>
      bridge.#fail(`no bridge at ${url} (${error.code}): start one with hotlap bridge`),
    );
    bridge.#socket.on('close', () => bridge.#fail('the bridge closed the connection'));
    return bridge.#reply();
  }

  async ask(request) {
    this.#send(TEXT, Buffer.from(JSON.stringify(request)));
    const reply = JSON.parse(await this.#reply());
    if (reply.type === 'error') throw new Error(reply.message);
    return reply;
  }

  close() {
    this.#send(CLOSE, Buffer.from([1000 >> 8, 1000 & 255]));
    this.#socket.end();
  }

  #reply() {
    return new Promise((resolve, reject) => (this.#waiting = { resolve, reject }));
  }

  #fail(message) {
    this.#waiting?.reject(new Error(message));
    this.#waiting = null;
  }

  // A client must mask its frames; a length of 126 or more takes two extra bytes, one of 65,536 or more takes eight.
  #send(kind, payload) {
    const mask = randomBytes(4);
    const isLong = payload.length >= 126;
    if (payload.length > 65535) throw new Error('a request has at most 65,536 bytes');
    const head = Buffer.alloc(isLong ? 4 : 2);
    head[0] = 0x80 | kind;
    head[1] = 0x80 | (isLong ? 126 : payload.length);
    if (isLong) head.writeUInt16BE(payload.length, 2);
    const masked = payload.map((byte, i) => byte ^ mask[i & 3]);
    this.#socket.write(Buffer.concat([head, mask, masked]));
  }

  #read(bytes) {
    this.#bytes = Buffer.concat([this.#bytes, bytes]);
    if (!this.#isOpen && !this.#finishHandshake()) return;
    for (let frame = this.#nextFrame(); frame; frame = this.#nextFrame()) {
      if (frame.kind === PING) this.#send(PONG, frame.payload);
      if (frame.kind === CLOSE) this.#fail('the bridge closed the connection');
      if (frame.kind === TEXT) this.#waiting?.resolve(frame.payload.toString());
    }
  }

  #finishHandshake() {
    const end = this.#bytes.indexOf('\r\n\r\n');
    if (end < 0) return false;
    const answer = this.#bytes.subarray(0, end).toString();
    this.#bytes = this.#bytes.subarray(end + 4);
    const accept = createHash('sha1').update(`${this.#key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
    this.#isOpen = answer.startsWith('HTTP/1.1 101') && answer.includes(accept);
    if (this.#isOpen) this.#waiting.resolve(this);
    else this.#fail(`connection refused: ${answer.split('\r\n')[0]}`);
    return this.#isOpen;
  }

  #nextFrame() {
    const bytes = this.#bytes;
    if (bytes.length < 2) return null;
    let [start, length] = [2, bytes[1] & 127];
    if (length === 126 && bytes.length >= 4) [start, length] = [4, bytes.readUInt16BE(2)];
    else if (length === 127 && bytes.length >= 10) [start, length] = [10, Number(bytes.readBigUInt64BE(2))];
    else if (length >= 126) return null;
    if (bytes.length < start + length) return null;
    this.#bytes = bytes.subarray(start + length);
    return { kind: bytes[0] & 15, payload: bytes.subarray(start, start + length) };
  }
}

async function main(url) {
  const bridge = await Bridge.connect(url);
  const hello = await bridge.ask({ type: 'hello' });
  console.log(`physics ${hello.physics}, ${hello.tracks.length} tracks`);

  // This driver is slow: it needs more ticks (of 1/60 s) for a lap than an episode usually has.
  const config = { episode: { maxSteps: 6000 } };
  let reply = await bridge.ask({ type: 'reset', trackId: 'track-01', seed: 1, config });
  let [total, done, lapTime] = [0, false, undefined];
  while (!done && lapTime === undefined) {
    reply = await bridge.ask({ type: 'step', action: drive(reply.observation) });
    total += reply.reward;
    done = reply.terminated || reply.truncated;
    lapTime = reply.info.lapTime; // present only on the step that ends a lap
  }
  await bridge.ask({ type: 'close' });
  bridge.close();
  if (lapTime === undefined) throw new Error(`no lap: the car got stuck after ${reply.info.tick} ticks`);
  console.log(`lap time ${lapTime.toFixed(3)} s, return ${total.toFixed(3)}`);
}

// Not when another program imports the bridge from here.
if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  main(process.argv[2] ?? 'ws://127.0.0.1:9876').catch((error) => {
    console.error(error.message);
    process.exitCode = 1;
  });
}
