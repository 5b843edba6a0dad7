"""The error of a release that cannot be built."""


class Refused(Exception):
    """Says why a release cannot be built."""
