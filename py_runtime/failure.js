// Errors with the names that Pteron gives them, on both sides of the language border.

/** An Error called `name` (a class of py_runtime/errors.py) with a message for a person. */
export function failure(name, message) {
  const error = new Error(message);
  error.name = name;
  return error;
}

const LOST_MS = 200;

const lost = new WeakMap(); // device -> why it went away

/** Remember when a device goes away, so that what fails then can say so. */
export function watchDevice(device) {
  device.lost.then(({ reason, message }) => lost.set(device, message || reason));
}

/** A DeviceLostError if this device has gone away, else null. */
export function lostDevice(device) {
  if (!lost.has(device)) {
    return null;
  }
  return failure(
    "DeviceLostError",
    `the GPU device went away (${lost.get(device)}). Run again: a new device is made and the program's weights are ` +
      "sent to it; its states start over.",
  );
}

/**
 * Buffers for these descriptors ({ what, size, usage }), all or none. Throws a LimitError that says what
 * there is no memory for.
 */
export async function allocate(device, descriptors) {
  const made = descriptors.map(({ what, size, usage }) => {
    device.pushErrorScope("out-of-memory");
    const buffer = device.createBuffer({ label: what, size, usage });
    return { buffer, what, size, scope: device.popErrorScope() };
  });
  const errors = await Promise.all(made.map(({ scope }) => scope.catch(() => null))); // a lost device rejects
  const at = errors.findIndex((error) => error !== null);
  if (at >= 0) {
    release(device, made.map(({ buffer }) => buffer));
    const { what, size } = made[at];
    throw failure(
      "LimitError",
      `${what} needs ${size.toLocaleString("en")} bytes of GPU memory, which the device does not have ` +
        `(${errors[at].message}). Close other programs and pages that use the GPU, or take a smaller model.`,
    );
  }
  return made.map(({ buffer }) => buffer);
}

/** Destroy buffers; their memory is free at once. Browsers keep it until the next commands are submitted. */
export function release(device, buffers) {
  buffers.forEach((buffer) => buffer.destroy());
  if (buffers.length) {
    device.queue.submit([]);
  }
}

/** Run `work` under error scopes; what WebGPU reports becomes a GPUError that names `what`. */
export async function guarded(device, what, work) {
  device.pushErrorScope("out-of-memory");
  device.pushErrorScope("internal");
  device.pushErrorScope("validation");
  let result;
  let thrown = null;
  try {
    result = work();
  } catch (error) {
    thrown = error;
  }
  const scopes = [device.popErrorScope(), device.popErrorScope(), device.popErrorScope()];
  try {
    result = await result;
  } catch (error) {
    thrown ??= error;
  }
  const [validation, internal, memory] = await Promise.all(scopes).catch(() => [null, null, null]); // a lost device
  if (thrown) {
    // what a lost device does to a run may be heard of before `device.lost` is
    await Promise.race([device.lost, new Promise((resolve) => setTimeout(resolve, LOST_MS))]);
  }
  await null; // lets `watchDevice` hear it first
  const gone = lostDevice(device);
  if (gone) {
    throw gone;
  }
  if (memory) {
    throw failure("LimitError", `${what}: the device has not enough memory (${memory.message})`);
  }
  const reported = validation ?? internal;
  if (reported) {
    throw failure("GPUError", `${what}: ${reported.message}`);
  }
  if (thrown) {
    throw thrown;
  }
  return result;
}
