// Errors with the names that Pteron gives them, on both sides of the language border.

/** An Error called `name` (a class of py_runtime/errors.py) with a message for a person. */
export function failure(name, message) {
  const error = new Error(message);
  error.name = name;
  return error;
}

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
    `the GPU device went away (${lost.get(device)}). Close this runtime, create another one and load the program again.`,
  );
}
