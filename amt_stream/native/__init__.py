"""Models as machine code without Python: C libraries, WebAssembly, and plug-ins made of them."""
