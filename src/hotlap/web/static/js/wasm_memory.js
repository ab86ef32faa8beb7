// An instance of one of our WebAssembly modules with its memory, in which places are taken one after the other.

const PAGE_BYTES = 65536;
const ALIGNED_BYTES = 64;

export class WasmMemory {
  /** `name` is what the module is called where it asks for something that it should not need. */
  constructor(module, name) {
    const env = {};
    for (const one of WebAssembly.Module.imports(module)) {
      env[one.name] = () => {
        throw new Error(`${name} called ${one.name}`);
      };
    }
    this.instance = new WebAssembly.Instance(module, { env });
    this.memory = this.instance.exports.memory;
    this.top = this.instance.exports.__heap_base.value;
  }

  /** The address of so many bytes; views of the memory from before are void where it has to grow. */
  take(numBytes) {
    const first = Math.ceil(this.top / ALIGNED_BYTES) * ALIGNED_BYTES;
    this.top = first + numBytes;
    const missing = this.top - this.memory.buffer.byteLength;
    if (missing > 0) this.memory.grow(Math.ceil(missing / PAGE_BYTES));
    return first;
  }

  /** The address of a copy of a typed array. */
  put({ buffer, byteOffset, byteLength }) {
    const first = this.take(byteLength);
    new Uint8Array(this.memory.buffer, first, byteLength).set(new Uint8Array(buffer, byteOffset, byteLength));
    return first;
  }
}

/** Write a value as a field of a record. */
export function writeField(view, type, offset, value) {
  if (type === 'f4') view.setFloat32(offset, value, true);
  else if (type === 'i8' || type === 'u8') view.setBigInt64(offset, BigInt(value), true);
  else view.setInt32(offset, Number(value), true);
}

/** The bytes of a record with these values. */
export function packRecord({ size, fields }, values) {
  const view = new DataView(new ArrayBuffer(size));
  for (const [name, value] of Object.entries(values)) writeField(view, ...fields[name], value);
  return new Uint8Array(view.buffer);
}
