"""Learning in reproducing kernel Hilbert spaces: kernels, blocks of their values, and the algorithms."""
