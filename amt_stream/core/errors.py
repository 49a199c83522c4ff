"""Errors that a user can correct."""


class Refusal(Exception):
    """An error that the user can correct; the message is one sentence.

    status: the exit status of a command that fails with it
    """

    status = 1
