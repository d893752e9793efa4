"""The zygote: the warm, clean process that forks workers."""
