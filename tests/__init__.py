"""Tests: `unit/` in CPython, `ops/` and `e2e/` in headless Chromium with WebGPU."""
