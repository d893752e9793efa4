process.env.ESBUILD_WORKER_THREADS = "0"; // a sandbox's node has no threads, but child processes
module.exports = require("esbuild-wasm");
