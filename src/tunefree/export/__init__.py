"""Models as files of ONNX operators, which other runtimes than this package predict with."""
