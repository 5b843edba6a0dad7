"""The error of a release that cannot be built."""


class Refused(Exception):
    """The reason why a release cannot be built."""
