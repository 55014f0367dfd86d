#!/usr/bin/env python3
"""Checks the links of the pages.

    links.py SOURCE

Reads every *.md in the root of the source tree, docs/, bench/ and tests/, and checks that

- each relative link and image leads to a file or folder that exists, and each anchor to a heading of its page
- each path in backticks, and in blocks of code, that begins with a folder of the tree exists; globs and {a,b} are allowed
- README.md has 120 to 150 lines
- the table of folders in docs/architecture.md agrees with what src/*/CMakeLists.txt link

Prints each fault as FILE:LINE and ends with status 1 if there is one.
"""
import glob
import os
import pathlib
import re
import sys
import urllib.parse

FOLDERS = ("src", "tests", "docs", "tools", "bench")
README_LINES = range(120, 151)
TEMPLATES = ("tests/outsiders/page.md",)  # its links are relative to the page that is made from it, docs/outsiders.md

FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*(<[^>]*>|[^\s()]*(?:\([^\s()]*\)[^\s()]*)*)[^()]*\)")
DEFINITION = re.compile(r"^ {0,3}\[[^\]]+\]:\s*(\S+)")
HTML = re.compile(r"<(?:img|a)\b[^>]*?\b(?:src|href)=\"([^\"]*)\"", re.I)
NAMED = re.compile(r"<a\b[^>]*?\b(?:id|name)=\"([^\"]*)\"", re.I)
HEADING = re.compile(r"^ {0,3}#{1,6}\s+(.*?)(?:\s+#+)?\s*$")
PATH = re.compile(r"(?<![\w./-])((?:%s)/[\w./*?{},+-]*)" % "|".join(FOLDERS))


def lines_of(page):
    """(number, text, whether it is code) of each line; the fences themselves are left out."""
    fence = None
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        found = FENCE.match(line)
        if fence is None and found:
            fence = found[1]
        elif fence is not None and found and found[1].startswith(fence):
            fence = None
        else:
            yield number, line, fence is not None


def slug(heading):
    """The anchor of a heading, by GitHub's rules."""
    text = re.sub(r"!?\[((?:[^\[\]]|\[[^\]]*\])*)\]\([^)]*\)", r"\1", heading)  # a link's text
    text = re.sub(r"<[^>]*>", "", text)
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def anchors_of(page):
    """The anchors of all headings of a page; for equal ones, the second ends in -1."""
    anchors, counts = set(), {}
    for _, line, is_code in lines_of(page):
        if is_code:
            continue
        anchors.update(NAMED.findall(line))
        if match := HEADING.match(line):
            anchor = slug(match[1])
            count = counts.get(anchor, 0)
            counts[anchor] = count + 1
            anchors.add(f"{anchor}-{count}" if count else anchor)
    return anchors


def expanded(path):
    """Expands a{b,c}d to abd and acd."""
    match = re.search(r"\{([^{}]*)\}", path)
    if not match:
        return [path]
    return [each for word in match[1].split(",") for each in expanded(path[:match.start()] + word + path[match.end():])]


class Check:
    def __init__(self, source):
        self.source = source
        self.faults = []
        self.anchors = {}

    def fault(self, page, number, text):
        self.faults.append(f"{page.relative_to(self.source)}:{number}: {text}")

    def link(self, page, number, target):
        target = target.strip("<>")
        if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//", target):
            return  # an external link
        path, _, anchor = urllib.parse.unquote(target).partition("#")
        found = page if not path else pathlib.Path(os.path.normpath(page.parent / path))
        if not target or path.startswith("/") or not found.is_relative_to(self.source):
            return self.fault(page, number, f"the link {target or '()'} leads out of the tree")
        if not found.exists():
            return self.fault(page, number, f"the link {target} leads to no file")
        if anchor and found.suffix == ".md":
            if found not in self.anchors:
                self.anchors[found] = anchors_of(found)
            if anchor not in self.anchors[found]:
                self.fault(page, number, f"the link {target} leads to no heading of {found.relative_to(self.source)}")

    def path(self, page, number, path):
        path = path.rstrip(".,")
        for each in expanded(path):
            if not glob.glob(str(self.source / each)):
                self.fault(page, number, f"there is no {each}")

    def page(self, page):
        is_template = str(page.relative_to(self.source)) in TEMPLATES
        for number, line, is_code in lines_of(page):
            code = [line] if is_code else [found[1] for found in CODE.findall(line)]
            for text in code:
                for path in PATH.findall(text):
                    self.path(page, number, path)
            if is_code or is_template:
                continue
            prose = CODE.sub(lambda found: "`" * len(found[0]), line)  # a link's text may be code
            for target in LINK.findall(prose) + DEFINITION.findall(prose) + HTML.findall(prose):
                self.link(page, number, target)

    def readme(self):
        page = self.source / "README.md"
        count = len(page.read_text(encoding="utf-8").splitlines())
        if count not in README_LINES:
            self.fault(page, count, f"{count} lines; it has {README_LINES[0]} to {README_LINES[-1]}")

    def architecture(self):
        """Compares rows "| `stack` | … | `unwind` `luastate` |" with what the folders link, without base."""
        page = self.source / "docs" / "architecture.md"
        linked = {}
        for file in sorted((self.source / "src").glob("*/CMakeLists.txt")):
            name = file.parent.name
            found = re.search(r"target_link_libraries\(luaspy_%s\s+PUBLIC([^)]*)\)" % name, file.read_text(encoding="utf-8"))
            words = found[1].split("PRIVATE")[0].split() if found else []
            linked[name] = {word.removeprefix("luaspy_") for word in words if word.startswith("luaspy_")} - {"flags", "base"}
        for number, line, is_code in lines_of(page):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            name = cells[0].strip("`")
            if is_code or len(cells) != 3 or cells[0] != f"`{name}`" or not re.fullmatch(r"\w+", name):
                continue
            says = set(re.findall(r"`(\w+)`", cells[2]))
            if name not in linked:
                self.fault(page, number, f"there is no src/{name}/CMakeLists.txt, or it has a row already")
            elif says != linked[name]:
                self.fault(page, number, f"src/{name}/CMakeLists.txt links {' '.join(sorted(linked[name])) or 'nothing'}")
            linked.pop(name, None)
        for name in linked:
            self.fault(page, 1, f"the table of folders lacks src/{name}")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    source = pathlib.Path(sys.argv[1]).resolve()
    pages = sorted(source.glob("*.md"))
    for folder in ("docs", "bench", "tests"):
        pages += sorted((source / folder).rglob("*.md"))
    check = Check(source)
    for page in pages:
        check.page(page)
    check.readme()
    check.architecture()
    for fault in check.faults:
        print(fault)
    if not check.faults:
        print(f"{len(pages)} pages: links, anchors and paths are right")
    return 1 if check.faults else 0


if __name__ == "__main__":
    sys.exit(main())
