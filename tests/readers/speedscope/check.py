#!/usr/bin/env python3
"""Load profiles into the real speedscope application and look at the result.

The web application comes from npm, is served on a loopback port together with
the profile, and runs in headless Chromium under chromedriver. Exit status: 0
when everything expected is shown, 1 otherwise.
"""
import argparse
import contextlib
import functools
import http.server
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import threading

try:
    import jsonschema
except ImportError:
    jsonschema = None
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from browser import Failure, browse, run_check

PACKAGE = "speedscope@1.25.0"  # pinned: this script reads the page it draws
# Helpers prepended to every script run inside the page.
PAGE = """
// The error page is one line of text in a div of its own.
const broken = () => all('div').some(d =>
  !d.childElementCount && /^\\S+ Something went wrong\\.$/.test(d.textContent));
// The sandwich view: a header table, followed by a scrolling list of rows.
const header = () => all('th').find(th => th.textContent.endsWith('Symbol Name'));
const list = () => header().closest('table').nextElementSibling;
// "(1/2)" beside the profile's name; absent when there is only one profile.
const counter = () => {
  const hit = all('span').map(s => /^\\((\\d+)\\/(\\d+)\\)$/.exec(s.textContent)).find(m => m);
  return hit ? [Number(hit[1]), Number(hit[2])] : [1, 1];
};
"""

LOADED = """
await until(() => broken() || (header() && list().querySelector('tr')));
return broken() ? null : counter();
"""

# The list contains only the visible rows, so scroll through all of it.
NAMES = """
await until(() => counter()[0] == arguments[0]);
const names = new Set();
for (let y = 0, step;; y += step) {
  list().scrollTop = y;
  await nextFrame();
  await nextFrame();
  for (const cell of list().querySelectorAll('td:nth-child(3)')) names.add(cell.textContent);
  step = Math.max(20, list().clientHeight * 0.9);
  if (y + list().clientHeight >= list().scrollHeight) return [...names];
}
"""

# The profile list that unfolds below the profile's name: index, name, weight.
CHOICES = """
if (counter()[1] == 1) return 1;
const rows = () => all('table').filter(t => !t.contains(header()) && !list().contains(t))
  .flatMap(t => [...t.querySelectorAll('tr')])
  .filter(r => r.offsetHeight && /^\\d+:?$/.test(r.cells[0].textContent.trim()));
await until(() => rows().length);
return rows().length;
"""

# Boxes are drawn by WebGL, their labels on a plain canvas above: wait until that is not empty.
DRAWN = """
await until(() => !header() && all('canvas').some(c => {
  const pen = c.width && c.height && c.getContext('2d');
  return pen && pen.getImageData(0, 0, c.width, c.height).data.some(Boolean);
}));
await nextFrame();
await nextFrame();
"""


def shape_problems(profile, schema_file):
    """Errors of the file that can be found without the application."""
    problems = []
    if jsonschema:
        schema = json.loads(schema_file.read_text())
        for error in jsonschema.Draft7Validator(schema).iter_errors(profile):
            problems.append("schema: " + error.message[:200])
    try:
        frames = profile["shared"]["frames"]
        if not all(isinstance(frame["name"], str) for frame in frames):
            problems.append("a frame's name is not a string")
        for number, entry in enumerate(profile["profiles"], 1):
            problems += [f"profile {number}: {text}" for text in entry_problems(entry, len(frames))]
    except (KeyError, TypeError) as error:
        problems.append(f"structure: {type(error).__name__} {error}")
    return problems


def entry_problems(entry, frame_count):
    samples, weights = entry["samples"], entry["weights"]
    if entry["type"] != "sampled":
        yield f"type is {entry['type']!r}"
    if entry["unit"] not in ("none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"):
        yield f"unit is {entry['unit']!r}"
    if entry["endValue"] < entry["startValue"]:
        yield "endValue is before startValue"
    if len(samples) != len(weights):
        yield f"{len(samples)} samples but {len(weights)} weights"
    if any(weight < 0 for weight in weights):
        yield "a weight is negative"
    strays = {i for stack in samples for i in stack if type(i) is not int or not 0 <= i < frame_count}
    if strays:
        yield f"no such frame index: {sorted(strays, key=str)[:5]} (there are {frame_count} frames)"


def fetch_app(work):
    """The directory of the built application, downloaded on first use."""
    for place in ("package", "node_modules/speedscope"):
        if (work / place / "dist/release/index.html").exists():
            return work / place / "dist/release"
    done = subprocess.run(["npm", "pack", "--silent", PACKAGE], cwd=work, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        raise Failure("npm pack failed: " + done.stderr.strip()[-500:])
    with tempfile.TemporaryDirectory(dir=work) as fresh:
        with tarfile.open(work / done.stdout.split()[-1]) as archive:
            archive.extractall(fresh)
        os.rename(os.path.join(fresh, "package"), work / "package")
    return work / "package/dist/release"


@contextlib.contextmanager
def serve(app, profile_bytes):
    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self):
            if self.path != "/test.speedscope.json":
                return super().do_GET()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(profile_bytes)))
            self.end_headers()
            self.wfile.write(profile_bytes)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Handler, directory=str(app)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def look(browser, site, picture):
    """Names shown in all profiles, and the number of profiles."""
    browser.call("POST", "/url", {
        "url": f"{site}/index.html#profileURL=/test.speedscope.json&view=sandwich"})
    position = browser.run(LOADED)
    if position is None:
        raise Failure("speedscope says 'Something went wrong'")
    count = position[1]
    browser.press("p" * count)  # back to the first profile, wherever it opened
    names = set(browser.run(NAMES, 1))
    for number in range(2, count + 1):
        browser.press("n")
        names.update(browser.run(NAMES, number))
    browser.press("p" * count + "2")
    browser.run(DRAWN)
    browser.screenshot(picture)
    browser.press("3t")
    browser.run(LOADED)
    return names, browser.run(CHOICES)


def check(args):
    args.work.mkdir(parents=True, exist_ok=True)
    work = args.work.resolve()
    app = fetch_app(work)
    return "; ".join(f"{file.name}: {check_file(file, args, work, app)}" for file in args.files)


def check_file(file, args, work, app):
    raw = file.read_bytes()
    try:
        profile = json.loads(raw)
    except ValueError as error:
        raise Failure(f"{file.name} is not JSON: {error}") from None
    problems = shape_problems(profile, app / "file-format-schema.json")
    picture = work / f"{file.name}.png"
    picture.unlink(missing_ok=True)
    try:
        with serve(app, raw) as site, browse(work, PAGE) as browser:
            try:
                names, count = look(browser, site, picture)
            except Failure as failure:
                browser.screenshot(picture)
                raise Failure(f"{failure} (last on its console: {browser.last_words()})") from None
    except Failure as failure:
        problems.append(str(failure))
    else:
        missing = [name for name in args.expect if name not in names]
        if missing:
            problems.append(f"not shown: {missing}; shown: {listing(names)}")
        if args.profiles is not None and count != args.profiles:
            problems.append(f"{count} profiles shown, {args.profiles} expected")
    if problems:
        raise Failure(f"{file.name}: " + "; ".join(problems))
    schema = "schema checked" if jsonschema else "no jsonschema module, schema not checked"
    return f"{count} profile(s), {schema}, {len(names)} names shown: {listing(names)}"


def listing(names, most=20):
    return ", ".join(map(repr, sorted(names)[:most])) + (", ..." if len(names) > most else "")


def main():
    parser = argparse.ArgumentParser(description="Check that a profile loads in speedscope.")
    parser.add_argument("files", type=pathlib.Path, nargs="+")
    parser.add_argument("--work", type=pathlib.Path, required=True,
                        help="directory for the npm package, the log and the pictures")
    parser.add_argument("--expect", action="append", required=True, metavar="NAME",
                        help="a frame name that must be listed, in full")
    parser.add_argument("--profiles", type=int, help="number of profiles that must be on offer")
    parser.add_argument("--limit", type=int, default=120, help="seconds for the whole run")
    args = parser.parse_args()
    run_check("speedscope", args.limit, lambda: check(args))


if __name__ == "__main__":
    main()
