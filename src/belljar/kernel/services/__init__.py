"""init's work: programs that are kept running, as files in /etc/init describe them."""
