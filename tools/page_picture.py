#!/usr/bin/env python3
"""A picture of a flame graph: tools/page_picture.py PAGE.html PICTURE.png

docs/flamegraph.png is made in this way, from the output of tools/try.sh. Needs chromium and chromium-driver.
"""
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "readers"))
import browser  # noqa: E402

page, picture = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
with tempfile.TemporaryDirectory() as work, browser.browse(pathlib.Path(work)) as window:
    window.call("POST", "/url", {"url": page.as_uri()})
    window.run("await until(() => performance.getEntriesByName('drawn').length)")
    window.screenshot(picture)
