"""Export of models to ONNX files, for prediction in other runtimes."""
