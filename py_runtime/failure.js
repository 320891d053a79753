// Errors with the names that Pteron gives them, on both sides of the language border.

/** An Error called `name` (a class of py_runtime/errors.py) with a message for a person. */
export function failure(name, message) {
  const error = new Error(message);
  error.name = name;
  return error;
}
