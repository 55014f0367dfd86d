#!/usr/bin/env python3
"""Whether ctest runs each live test: a case has a tag of one of the lists in CMakeLists.txt, and each of these tags has a case. And
whether .ci/run does, which leaves out the label `same` where it tests on all Luas: no case of these is for all Luas, or for each that is there.

    tags.py CTEST BUILD_FOLDER LIVE [SPEC]...

SPEC: what ctest runs of LIVE only where it tests on all Luas; without one, it does so here."""

import json
import pathlib
import subprocess
import sys


def registered(ctest, folder, live):
    """What ctest has LIVE run: a Catch specification for each of its tests, and which of these have the label `same`."""
    shown = subprocess.run([ctest, "--test-dir", folder, "--show-only=json-v1"], check=True, capture_output=True, text=True).stdout
    of_live = [test for test in json.loads(shown)["tests"] if test.get("command") and pathlib.Path(test["command"][0]).resolve() == live]
    labels = [next((p["value"] for p in test["properties"] if p["name"] == "LABELS"), []) for test in of_live]
    return [test["command"][1] for test in of_live], [test["command"][1] for test, own in zip(of_live, labels) if "same" in own]


def cases(live, specification=None):
    """The names of the cases that match it; of all that are not hidden."""
    command = [live, "--list-test-names-only"] + ([specification] if specification else [])
    # Catch's exit status is the number of names.
    return set(subprocess.run(command, check=False, capture_output=True, text=True).stdout.splitlines())


def main():
    ctest, folder, live, *elsewhere = sys.argv[1:]
    live = pathlib.Path(live).resolve()
    every, run = cases(live), set()
    specifications, same = registered(ctest, folder, live)
    problems = [] if every and specifications else ["ctest runs no live test, or there is none"]
    for specification in specifications:
        found = cases(live, specification)
        run |= found
        if not found:
            problems.append(f"ctest runs live {specification}, which no case matches")
    on_all = set().union(*(cases(live, specification) for specification in specifications if specification not in same))
    for specification in same if not elsewhere else []:
        tag = specification.split("~")[0]
        for name in sorted(cases(live, f"{tag}[all],{tag}[luas]") - on_all):
            problems.append(f'.ci/run does not run "{name}" on all Luas: add {tag} to tags_of_luas in tests/CMakeLists.txt')
    for specification in elsewhere:
        run |= cases(live, specification)
    problems += [f'ctest does not run "{name}": add a tag of it to a list in tests/CMakeLists.txt' for name in sorted(every - run)]
    for problem in problems:
        print("FAIL:", problem)
    print(f"{len(every)} cases, {len(specifications)} tests of ctest")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
