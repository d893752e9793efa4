"""An uncaught error: the traceback on stderr, and status 1."""


def load(config):
    return config["name"]


def main():
    print("starting")
    load({})


main()
