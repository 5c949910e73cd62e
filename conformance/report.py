"""A table of libraries: chapters, how many checks pass, and why not."""


def add_arguments(parser):
    pass


def main(args):
    return 0
