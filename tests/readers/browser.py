"""Headless Chromium under chromedriver, for the checks of pages.

Exit status of a check: 0 when everything expected is shown, 1 otherwise.
"""
import base64
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

SCRIPT_LIMIT = 20              # seconds for one script inside the page
CHROMIUM_FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--enable-unsafe-swiftshader",
    "--disable-dev-shm-usage", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--window-size=1280,800",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]


# In front of every script run inside the page.
START = """
const finish = arguments[arguments.length - 1];
const nextFrame = () => new Promise(requestAnimationFrame);
const until = async (found) => {
  for (let value;; await nextFrame()) if ((value = found())) return value;
};
const all = (selector) => [...document.querySelectorAll(selector)];
"""


class Failure(Exception):
    pass


class Skipped(Exception):
    """This machine does not have what the check needs."""


SKIPPED = 77  # ctest's SKIP_RETURN_CODE


class Browser:
    """The few WebDriver commands needed here. `helpers`: prepended to every script. `capabilities`: what chromedriver says of the session."""

    def __init__(self, base, helpers="", capabilities=None):
        self.base = base
        self.capabilities = capabilities
        self.helpers = helpers
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def call(self, method, path, body=None):
        request = urllib.request.Request(
            self.base + path, method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"})
        try:
            with self.opener.open(request, timeout=SCRIPT_LIMIT + 10) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            value = json.load(error)["value"]
            raise Failure(value["message"].splitlines()[0]) from None

    def run(self, script, *args):
        wrapped = START + self.helpers + "(async () => {" + script + "})().then(finish, e => finish({failed: String(e)}));"
        # The inner arrow function shares the outer `arguments`.
        value = self.call("POST", "/execute/async", {"script": wrapped, "args": args})
        if isinstance(value, dict) and "failed" in value:
            raise Failure("in the page: " + value["failed"])
        return value

    def press(self, keys):
        body = self.call("POST", "/element", {"using": "css selector", "value": "body"})
        self.call("POST", f"/element/{next(iter(body.values()))}/value", {"text": keys})

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self.call("GET", "/screenshot")))

    def last_words(self):
        lines = self.call("POST", "/se/log", {"type": "browser"})
        return lines[-1]["message"].splitlines()[0] if lines else "nothing"


@contextlib.contextmanager
def browse(work, helpers=""):
    for tool in ("chromium", "chromedriver"):
        if not shutil.which(tool):
            raise Failure(f"{tool} is not installed")
    with tempfile.TemporaryDirectory(dir=work, ignore_cleanup_errors=True) as home, \
            open(work / "chromedriver.log", "w") as log, \
            subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=log,
                             text=True, env={**os.environ, "HOME": home},
                             start_new_session=True) as driver:
        browser = None
        try:
            ports = (re.search(r"successfully on port (\d+)", line) for line in driver.stdout)
            port = next((found[1] for found in ports if found), None)
            if not port:
                raise Failure(f"chromedriver did not start, see {log.name}")
            root = f"http://127.0.0.1:{port}/session"
            session = Browser(root).call("POST", "", {"capabilities": {"alwaysMatch": {
                "browserName": "chrome",
                "timeouts": {"script": SCRIPT_LIMIT * 1000},
                "goog:loggingPrefs": {"browser": "ALL"},
                "goog:chromeOptions": {
                    "binary": shutil.which("chromium"),
                    "args": CHROMIUM_FLAGS + [f"--user-data-dir={home}/profile"]}}}})
            browser = Browser(f"{root}/{session['sessionId']}", helpers, session["capabilities"])
            yield browser
        finally:
            if browser:
                with contextlib.suppress(Exception):
                    browser.call("DELETE", "")
            driver.terminate()
            driver.wait()
            end_leftovers(home)


def end_leftovers(home):
    """Kill a browser whose session was not closed properly, identified by its own directory."""
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if home.encode() in (entry / "cmdline").read_bytes():
                os.kill(int(entry.name), signal.SIGKILL)


def run_check(name, limit, check):
    """Prints what `check` returns, or why it failed; leaving by an exception also ends the browser."""
    sys.stdout.reconfigure(errors="backslashreplace")

    def late(number, _):
        signal.signal(number, signal.SIG_IGN)  # one signal is enough: the clean-up must finish
        raise Failure(f"gave up after {limit} s" if number == signal.SIGALRM else "terminated")

    signal.signal(signal.SIGALRM, late)
    signal.signal(signal.SIGTERM, late)
    signal.alarm(limit)
    try:
        print("ok:", check())
    except Skipped as skipped:
        print(f"SKIPPED: {name}: {skipped}")
        sys.exit(SKIPPED)
    except (Failure, OSError) as failure:
        print(f"FAIL: {name}: {failure}")
        sys.exit(1)
