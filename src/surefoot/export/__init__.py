"""Policies as ONNX files that need neither Surefoot nor torch to run."""
