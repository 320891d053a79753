"""Measurements against peers, and their recorded results."""
