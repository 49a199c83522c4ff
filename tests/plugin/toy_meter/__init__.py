"""A meter as another package would bring it: an entry, a model, its readings and its self-test."""
