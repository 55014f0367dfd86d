#!/usr/bin/env python3
"""Usage: circles.py SOURCE: no circle of files in src/ (a .h and a .cpp of one name are one file), and no two types of one name in its headers."""

import pathlib
import re
import sys

source = pathlib.Path(sys.argv[1]) / "src"
includes = {}
for path in sorted(source.rglob("*")):
    if path.suffix not in (".h", ".cpp"):
        continue
    names = re.findall(r'^#include "(.*)\.h"', path.read_text(), re.MULTILINE)
    includes.setdefault(str(path.relative_to(source).with_suffix("")), set()).update(names)


def reach(start):
    reached, waiting = set(), [start]
    while waiting:
        for name in includes.get(waiting.pop(), ()):
            if name not in reached:
                reached.add(name)
                waiting.append(name)
    return reached


reached = {name: reach(name) - {name} for name in includes}
circles = {" ".join(sorted(other for other in {name, *reached[name]} if other == name or name in reached[other]))
           for name in includes}
circles = {circle for circle in circles if " " in circle}
for circle in sorted(circles):
    print("These files include each other in a circle:", circle)

# Two types of one name in one namespace link without a word, and one of them gets the functions of the other.
places = {}
for path in sorted(source.rglob("*.h")):
    text = path.read_text()
    space = (re.findall(r"^namespace ([\w:]+) \{", text, re.MULTILINE) or [""])[-1]
    for name in re.findall(r"^(?:struct|class|enum class) (\w+)(?: final)?(?: :[^;{]*)?\s*\{", text, re.MULTILINE):
        places.setdefault((space, name), set()).add(str(path.relative_to(source)))
twice = {name: files for name, files in places.items() if len(files) > 1}
for (space, name), files in sorted(twice.items()):
    print(f"{space}::{name} is defined in", " and in ".join(sorted(files)))
sys.exit(bool(circles or twice))
