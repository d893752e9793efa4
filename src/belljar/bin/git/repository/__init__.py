"""A repository and what can be asked of it: objects, refs, index, work tree, history, differences, remotes.

The commands beside this package stand on it; nothing in here knows of a command.
"""
