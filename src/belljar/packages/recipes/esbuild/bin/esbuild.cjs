require("esbuild-wasm/bin/esbuild");
