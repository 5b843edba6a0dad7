"""A target that always fails."""


class OrderRefused(Exception):
    pass


def handler(event, context):
    raise OrderRefused("never \u00e9")
