"""The page of a running meter, in a separate process, so that clients do not slow it down."""
