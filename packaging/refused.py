"""How a release that cannot be made ends."""


class Refused(Exception):
    """A release cannot be made, for the reason that this says."""
