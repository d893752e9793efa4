"""System calls of an engine process on the sandbox's kernel: the frames, the kernel's side, the process's side."""
