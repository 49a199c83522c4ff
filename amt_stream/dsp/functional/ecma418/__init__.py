"""The hearing model of ECMA-418-2:2025: compiled forms, on the CPU and without gradients."""
