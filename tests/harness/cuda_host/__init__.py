"""The CPU as a stand-in for a GPU: tests run the text of generated kernels on it."""
