"""In the owner's process: its hold on zygotes and workers."""
