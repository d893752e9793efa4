"""The native tier: real programs in namespaces, served by the agent."""
