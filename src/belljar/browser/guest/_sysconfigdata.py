"""What `sysconfig` reads, under the name that it looks for where `sys.platform` is "linux"."""

import importlib

build_time_vars = importlib.import_module("_sysconfigdata__emscripten_wasm32-emscripten").build_time_vars
