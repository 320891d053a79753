"""What stands around a model: a picture to its input, its output to an answer. NumPy lives here."""
