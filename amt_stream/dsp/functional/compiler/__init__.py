"""How recurrences become machine code, operators of torch, and kernels of a GPU."""
