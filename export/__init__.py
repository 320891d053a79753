"""Offline: PyTorch models to `.pte` programs and manifests. Needs torch and executorch."""
