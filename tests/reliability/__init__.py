"""Load, soak, faults, odd environments and data integrity. Sampled by `make test`, whole by `make reliability`."""
