"""Settings every test shares: property tests repeat the same examples, unless asked to explore."""

from hypothesis import settings

# A shared two-core machine makes per-example deadlines a coin toss, so there are none.
settings.register_profile("deterministic", deadline=None, derandomize=True, print_blob=True)
# `pytest --hypothesis-profile=explore` looks for new failures.
settings.register_profile("explore", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile("deterministic")
