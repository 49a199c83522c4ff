"""A meter as another package brings it: an entry, a model, its readings and its self-test.

Nothing is imported here: a list of models must not load torch.
"""
