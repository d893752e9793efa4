"""WebAssembly programs: any wasm32-wasip1 file with the execute bit, on the sandbox's kernel."""
