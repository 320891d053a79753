"""Pteron: PyTorch models in the browser, driven by Python.

Read the modules in the order of the data: `program` (the file), `graph` (a delegate's
operators), `passes` (graph to graph), `ops` (operators to kernels), `memory` and `plan`
(the flat dispatch list), `device` (the one module that touches JavaScript), `runtime`
(the public face).
"""

__version__ = "0.1.0"
