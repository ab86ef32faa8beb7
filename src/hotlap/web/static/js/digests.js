// Digests of bytes. The browser's own SHA-256 is missing on pages that are not secure.

/** The CRC-32 of some bytes. */
export function crc32(bytes) {
  let sum = ~0;
  for (const byte of bytes) {
    sum ^= byte;
    for (let k = 0; k < 8; k += 1) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return ~sum >>> 0;
}

const isPrime = (number) => {
  for (let k = 2; k * k <= number; k += 1) if (number % k === 0) return false;
  return true;
};

const PRIMES = Array.from({ length: 312 }, (_, k) => k).filter((k) => k > 1 && isPrime(k));
const fractionBits = (value) => Math.floor((value - Math.floor(value)) * 2 ** 32) >>> 0;
const ROUNDS = PRIMES.map((prime) => fractionBits(Math.cbrt(prime)));
const START = PRIMES.slice(0, 8).map((prime) => fractionBits(Math.sqrt(prime)));
const turn = (word, bits) => (word >>> bits) | (word << (32 - bits));

/** The SHA-256 of some bytes, in hexadecimal digits (FIPS 180-4). */
export function sha256(bytes) {
  const padded = new Uint8Array(64 * Math.ceil((bytes.length + 9) / 64));
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(bytes.length / 2 ** 29));
  view.setUint32(padded.length - 4, (bytes.length << 3) >>> 0);
  const state = Int32Array.from(START);
  const words = new Int32Array(64);
  for (let first = 0; first < padded.length; first += 64) mixBlock(view, first, words, state);
  return [...state].map((word) => (word >>> 0).toString(16).padStart(8, '0')).join('');
}

function mixBlock(view, first, words, state) {
  for (let k = 0; k < 16; k += 1) words[k] = view.getInt32(first + 4 * k);
  for (let k = 16; k < 64; k += 1) {
    const [near, far] = [words[k - 2], words[k - 15]];
    const one = turn(far, 7) ^ turn(far, 18) ^ (far >>> 3);
    const two = turn(near, 17) ^ turn(near, 19) ^ (near >>> 10);
    words[k] = words[k - 16] + one + words[k - 7] + two;
  }
  let [a, b, c, d, e, f, g, h] = state;
  for (let k = 0; k < 64; k += 1) {
    const mixed = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25);
    const one = (h + mixed + ((e & f) ^ (~e & g)) + ROUNDS[k] + words[k]) | 0;
    const two = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((word, k) => {
    state[k] += word;
  });
}
