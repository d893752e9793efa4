"""The process a sandbox lives in: the session inside it, and (outside) what starts and seals it."""
