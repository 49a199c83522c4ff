"""What is refused, and told to a person."""


class Refusal(Exception):
    """Something that whoever runs the program can put right; the message is one sentence.

    status: of a command that ends with it
    """

    status = 1
