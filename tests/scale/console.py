"""A browser for `comeback ui` that measures the time and memory that its pages take. Runs on Linux only."""

import html
import http.client
import re
import subprocess
import sys
import time
import urllib.parse

from dead_letters import peak_megabytes

MOST_SECONDS_OF_A_PAGE = 0.1


class Console:
    """The console's server, and a browser that is signed in to it."""

    def __init__(self, comeback, variables, folder):
        command = [comeback, "ui", "--no-open", "--handler", "handler"]
        self.server = subprocess.Popen(command, env=variables, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        while not (found := re.search(r"http://(127\.0\.0\.1:\d+)(/enter\S+)", line := self.server.stdout.readline())):
            if not line:
                sys.exit("comeback ui printed no address")
        self.host, self.cookie = found[1], None
        answer = self.request("GET", found[2])
        self.cookie = answer.getheader("set-cookie").split(";")[0]
        self.secret = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.terminate()
        self.server.wait()

    def request(self, method, path, fields=None):
        connection = http.client.HTTPConnection(self.host, timeout=600)
        headers = {"cookie": self.cookie} if self.cookie else {}
        if fields is not None:
            headers |= {"origin": f"http://{self.host}", "content-type": "application/x-www-form-urlencoded"}
        connection.request(method, path, urllib.parse.urlencode(fields) if fields is not None else None, headers)
        return connection.getresponse()

    def page(self, path):
        start = time.monotonic()
        answer = self.request("GET", path)
        text, seconds = answer.read().decode(), time.monotonic() - start
        if answer.status != 200:
            sys.exit(f"{path} was answered with {answer.status}: {text}")
        if secret := re.search(r'name="secret" value="(\w+)"', text):
            self.secret = secret[1]
        return text, seconds

    def post(self, path, **fields):
        """Submits a form of the last page, and waits until the action is done. Returns the page that says so."""
        answer = self.request("POST", path, {"secret": self.secret, **fields})
        text = answer.read().decode()
        if answer.status != 303:
            sys.exit(f"{path} was answered with {answer.status}: {text}")
        work = answer.getheader("location")
        while 'data-refresh="done"' not in (text := self.page(work)[0]):
            time.sleep(0.05)
        if '<p class="notice bad">' in text:
            sys.exit(f"{path}: {text}")
        return text

    def megabytes(self):
        return peak_megabytes(self.server.pid)


def link(page, relation):
    found = re.search(rf'<a [^>]*rel="{relation}"[^>]*>', page)
    return html.unescape(re.search(r'href="([^"]+)"', found[0])[1])
