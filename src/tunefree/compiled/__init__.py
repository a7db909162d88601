"""Compiled functions: declared, exported as bitcode, loaded as machine code, and called."""
