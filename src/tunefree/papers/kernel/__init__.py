"""Learning in reproducing kernel Hilbert spaces: kernels, sums of their values over a support, and PiSTOL."""
