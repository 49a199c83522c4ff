"""The page of a running meter, in a process of its own: who looks at it takes no time from it."""
