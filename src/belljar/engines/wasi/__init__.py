"""WASI preview 1 on the sandbox's kernel: what a wasm32-wasip1 program sees of the world."""
