"""Exports policies as ONNX files that run without Surefoot and PyTorch."""
