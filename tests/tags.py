#!/usr/bin/env python3
"""Whether ctest runs each live test: a case has a tag of one of the lists in CMakeLists.txt, and each of these tags has a case.

    tags.py CTEST BUILD_FOLDER LIVE gate|night

The gate leaves out the cases with the tags [all] and [night], and those of the tests whose layer is night."""

import json
import pathlib
import re
import subprocess
import sys


def registered(ctest, folder, live):
    """What ctest has LIVE run: a Catch specification for each of its tests."""
    shown = subprocess.run([ctest, "--test-dir", folder, "--show-only=json-v1"], check=True, capture_output=True, text=True).stdout
    of_live = [test for test in json.loads(shown)["tests"] if test.get("command") and pathlib.Path(test["command"][0]).resolve() == live]
    return [test["command"][1] for test in of_live]


def cases(live, specification=None):
    """The names of the cases that match it; of all that are not hidden."""
    command = [live, "--list-test-names-only"] + ([specification] if specification else [])
    # Catch's exit status is the number of names.
    return set(subprocess.run(command, check=False, capture_output=True, text=True).stdout.splitlines())


def main():
    ctest, folder, live, layers = sys.argv[1:]
    live = pathlib.Path(live).resolve()
    every, run = cases(live), set()
    specifications = registered(ctest, folder, live)
    problems = [] if every and specifications else ["ctest runs no live test, or there is none"]
    for specification in specifications:
        found = cases(live, specification)
        run |= found
        if not found:
            problems.append(f"ctest runs live {specification}, which no case matches")
    if layers != "night":
        lists = (pathlib.Path(__file__).parent / "CMakeLists.txt").read_text()
        nights = re.search(r"foreach\(tag ([a-z_\s]+)\)\s+live_test\(live_\$\{tag\} night", lists).group(1).split()
        for tag in ["all", "night", *nights]:
            run |= cases(live, f"[{tag}]")
    problems += [f'ctest does not run "{name}": add a tag of it to a list in tests/CMakeLists.txt' for name in sorted(every - run)]
    for problem in problems:
        print("FAIL:", problem)
    print(f"{len(every)} cases, {len(specifications)} tests of ctest")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
