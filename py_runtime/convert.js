// Typed arrays of the caller to the 32-bit (or f16) elements of GPU memory, and back.
//
// A dtype is what the caller sees; a storage is the WGSL type of an element in a buffer
// (py_runtime/dtypes.py has the table).

import { failure } from "./failure.js";

/** The typed array of each dtype. float16 is its bits here: Pyodide knows no Float16Array. */
export const ARRAYS = {
  bool: Uint8Array,
  uint8: Uint8Array,
  int8: Int8Array,
  int16: Int16Array,
  uint16: Uint16Array,
  int32: Int32Array,
  uint32: Uint32Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
  float16: Uint16Array,
  bfloat16: Uint16Array,
  float32: Float32Array,
  float64: Float64Array,
};

const STORAGE_ARRAYS = { f32: Float32Array, i32: Int32Array, u32: Uint32Array, f16: Uint16Array };
const NATIVE = { f32: "float32", i32: "int32", f16: "float16" };

const INT32_MIN = -(2n ** 31n);
const INT32_MAX = 2n ** 31n - 1n;

/** One half's bits as a number (IEEE 754 binary16). */
export function halfToNumber(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) {
    return fraction ? NaN : sign * Infinity;
  }
  return exponent ? sign * 2 ** (exponent - 15) * (1 + fraction / 1024) : sign * 2 ** -14 * (fraction / 1024);
}

const SCRATCH = new DataView(new ArrayBuffer(4));

/** A number as a half's bits, rounded to nearest, ties to even. */
export function numberToHalf(value) {
  SCRATCH.setFloat32(0, value);
  const bits = SCRATCH.getUint32(0);
  const sign = (bits >>> 16) & 0x8000;
  const magnitude = Math.abs(SCRATCH.getFloat32(0));
  if (Number.isNaN(value)) {
    return sign | 0x7e00;
  }
  if (magnitude >= 65520) {
    return sign | 0x7c00;
  }
  if (magnitude < 2 ** -14) {
    return sign | roundEven(magnitude * 2 ** 24);
  }
  const exponent = ((bits >>> 23) & 255) - 127;
  return sign | (((exponent + 14) << 10) + roundEven((magnitude / 2 ** exponent) * 1024));
}

function roundEven(value) {
  const low = Math.floor(value);
  const rest = value - low;
  return rest > 0.5 || (rest === 0.5 && low % 2) ? low + 1 : low;
}

const bfloatToNumber = (bits) => {
  SCRATCH.setUint32(0, bits << 16);
  return SCRATCH.getFloat32(0);
};

const numberToBfloat = (value) => {
  SCRATCH.setFloat32(0, value);
  const bits = SCRATCH.getUint32(0);
  return Number.isNaN(value) ? 0x7fc0 : (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
};

/** A caller's typed array as the bytes that go to the GPU. */
export function toStorage(array, dtype, storage) {
  if (dtype === NATIVE[storage]) {
    return array;
  }
  const result = new STORAGE_ARRAYS[storage](array.length);
  if (dtype === "int64") {
    for (let i = 0; i < array.length; i++) {
      if (array[i] < INT32_MIN || array[i] > INT32_MAX) {
        throw failure(
          "LimitError",
          `the int64 input has ${array[i]} at element ${i}; the GPU computes integers in 32 bits, ` +
            `from ${INT32_MIN} to ${INT32_MAX}`,
        );
      }
      result[i] = Number(array[i]);
    }
  } else if (dtype === "float16") {
    for (let i = 0; i < array.length; i++) {
      result[i] = halfToNumber(array[i]);
    }
  } else if (dtype === "bfloat16") {
    for (let i = 0; i < array.length; i++) {
      result[i] = bfloatToNumber(array[i]);
    }
  } else if (storage === "f16") {
    for (let i = 0; i < array.length; i++) {
      result[i] = numberToHalf(array[i]);
    }
  } else if (dtype === "bool") {
    for (let i = 0; i < array.length; i++) {
      result[i] = array[i] ? 1 : 0;
    }
  } else {
    result.set(array);
  }
  return result;
}

/** `bytes`, `count` elements of GPU memory that are the caller's to keep, as a typed array of the dtype. */
export function fromStorage(bytes, dtype, storage, count) {
  if (dtype === NATIVE[storage]) {
    return new ARRAYS[dtype](bytes, 0, count);
  }
  const source = new STORAGE_ARRAYS[storage](bytes, 0, count);
  if (dtype === "int64") {
    return BigInt64Array.from(source, BigInt);
  }
  if (dtype === "float16") {
    return Uint16Array.from(source, numberToHalf);
  }
  if (dtype === "bfloat16") {
    return Uint16Array.from(source, numberToBfloat);
  }
  if (storage === "f16") {
    return ARRAYS[dtype].from(source, halfToNumber);
  }
  return ARRAYS[dtype].from(source);
}
