// Data files that a static page has packed, see docs/web-api.md; as the server has them again, to the bit.

const MAGIC = 'HLZ1';
const HEAD_BYTES = 12;

/** Bytes through a transform: deflated or inflated. */
export async function pipe(bytes, transform) {
  const stream = new Blob([bytes]).stream().pipeThrough(transform);
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** The file in a buffer: unpacked where it is packed, else as it is. */
export async function unpackFile(buffer) {
  const bytes = new Uint8Array(buffer);
  if (String.fromCharCode(...bytes.subarray(0, 4)) !== MAGIC) return buffer;
  const [rowBytes, numDifferences] = bytes.subarray(4, 6);
  const length = new DataView(buffer).getUint32(8, true);
  const columns = await pipe(bytes.subarray(HEAD_BYTES), new DecompressionStream('deflate-raw'));
  if (columns.length !== length) throw new Error('A file of this page is damaged. Load the page again.');
  const rows = turnBack(columns, rowBytes);
  if (rowBytes > 1) unmix(new Uint32Array(rows.buffer, 0, length >> 2), rowBytes >> 2, numDifferences);
  return rows.buffer;
}

/** Columns become rows again. */
function turnBack(columns, rowBytes) {
  if (rowBytes === 1) return columns;
  const rows = columns.slice();
  const numRows = Math.floor(columns.length / rowBytes);
  for (let place = 0, at = 0; place < rowBytes; place += 1) {
    for (let row = 0; row < numRows; row += 1, at += 1) rows[row * rowBytes + place] = columns[at];
  }
  return rows;
}

/** The numbers of their differences to the row before, in place; without differences only the sign goes first again. */
function unmix(words, row, numDifferences) {
  for (let k = 0; k < words.length; k += 1) {
    const sign = words[k] & 1;
    words[k] = (words[k] >>> 1) ^ (numDifferences ? -sign : sign << 31);
  }
  for (let n = 0; n < numDifferences; n += 1) for (let k = row; k < words.length; k += 1) words[k] += words[k - row];
}
