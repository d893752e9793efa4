"""What the owner's machine does with packages: build them from directories, keep and serve registries."""
