"""Every failure that Pteron names, each with what was given, what is needed and what to do.

The class names are part of the public face: on the page they arrive as `error.name`.
"""


class PteronError(Exception):
    """The base of all errors that Pteron raises on purpose."""


class ProgramError(PteronError):
    """The bytes are not a program that can be read: another kind of file, or broken inside."""


class TruncatedProgramError(ProgramError):
    """The file ends before the data that it announces."""


class InputCountError(PteronError):
    """`execute` got more or fewer inputs than the method has."""


class InputShapeError(PteronError):
    """An input has another shape than the method takes."""


class InputDtypeError(PteronError):
    """An input has another dtype than the method takes."""


class WebGPUUnavailableError(PteronError):
    """This browser gives no WebGPU adapter or device."""


class MissingOperatorError(PteronError):
    """The program needs operators that Pteron does not have."""


class UnsupportedError(PteronError):
    """The program uses a form of a known feature that Pteron does not do."""


class LimitError(PteronError):
    """Something is larger than the device allows."""


class GPUError(PteronError):
    """WebGPU reported an error while a pipeline, a buffer or a run was made."""


class DeviceLostError(PteronError):
    """The GPU device went away while it was needed."""


class ClosedError(PteronError):
    """A runtime, program or method was used after `close()`."""


class AbortError(PteronError):
    """A load was given up by its AbortSignal."""


class FetchError(PteronError):
    """A file could not be fetched."""
