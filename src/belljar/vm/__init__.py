"""Virtual machines: QEMU, their root filesystems and block stores."""
