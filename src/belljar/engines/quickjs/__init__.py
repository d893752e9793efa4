"""JavaScript where V8 can't run: QuickJS in WebAssembly, behind the interface that engines/js has."""
