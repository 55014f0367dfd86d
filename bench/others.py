def measure(setup, report):
    pass
