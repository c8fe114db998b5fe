"""A local stand-in for the model hub: the HTTP interface a download uses, with faults on demand.

`Hub()` serves on 127.0.0.1 from a thread until `close()`. Small files are answered directly;
safetensors and pickles by a redirect to another host name, as large files are. Every request is
kept in `log`.
"""

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

LARGE = (".safetensors", ".bin")


class Hub:
    """Repositories, their commits, and the faults to show."""

    def __init__(self):
        self.repos = {}  # id -> {revision: commit}
        self.commits = {}  # commit -> {file: bytes}
        self.log = []  # (method, path, headers) of every request
        # file name -> how many more times its transfer breaks off in the middle
        self.cuts = {}
        self.forged = {}  # file name -> bytes sent in place of the promised ones
        # file name -> headers in place of the right ones: for each answer in turn, then the last
        self.headers = {}
        self.absent = set()  # names of files that are listed, but are not there
        self.listed_commit = None  # what the list of files calls its commit, in place of its hash
        self.listed_sha256 = None  # and what it calls the sha256 of every large file
        self.listed_size = None  # and the size of every file
        self.renamed = {}  # old id -> new id, answered by a redirect
        self.refuse = None  # (status, X-Error-Code) for whoever does not present `token`
        # whether the list of files is open to all the same, as for gated models
        self.listed = False
        self.page = None  # bytes of a page that answers everything, as a hotel's login does
        self.token = "hf_right"
        handler = type("Bound", (Handler,), {"hub": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.store = f"http://localhost:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self):
        """Stop answering; later connections are refused."""
        self.server.shutdown()
        self.server.server_close()

    def publish(self, repo, files, *revisions):
        """Put a commit with `files` into `repo`, under "main" or these revisions; its hash."""
        commit = hashlib.sha1(repr((repo, sorted(files.items()))).encode()).hexdigest()
        self.commits[commit] = dict(files)
        names = [commit, *(revisions or ["main"])]
        self.repos.setdefault(repo, {}).update(dict.fromkeys(names, commit))
        return commit

    def requests(self, *words):
        """Logged (method, path, headers) whose path has all the words."""
        return [entry for entry in self.log if all(word in entry[1] for word in words)]


class Handler(BaseHTTPRequestHandler):
    """One request; `hub` is set by the class that Hub makes of this."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Silence: the log is a list."""

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        """Log, then answer one of the three kinds of path."""
        path = urlsplit(self.path).path
        self.hub.log.append((self.command, unquote(path), dict(self.headers)))
        if self.hub.page:
            self.answer(200, self.hub.page, {"Content-Type": "text/html"})
        elif path.startswith("/store/"):
            commit, name = unquote(path).removeprefix("/store/").split("/", 1)
            self.send_file(name, self.hub.forged.get(name, self.hub.commits[commit][name]), {})
        elif path.startswith("/api/models/") and "/revision/" in path:
            repo, revision = path.removeprefix("/api/models/").split("/revision/")
            template = f"/api/models/{{}}/revision/{revision}?blobs=True"
            self.to_repo(repo, revision, template, self.info)
        elif "/resolve/" in path:
            repo, place = path[1:].split("/resolve/")
            revision, name = place.split("/", 1)
            template = f"/{{}}/resolve/{place}"
            self.to_repo(
                repo, revision, template, lambda repo, commit: self.resolve(repo, commit, name)
            )
        else:
            self.answer(404)

    def to_repo(self, repo, revision, path, then):
        """Errors and redirects that concern a whole repository, else `then(repo, commit)`."""
        revision = unquote(revision)
        if repo in self.hub.renamed:
            self.answer(307, headers={"Location": path.format(self.hub.renamed[repo])})
        elif self.refused(then):
            status, code = self.hub.refuse
            self.answer(status, headers={"X-Error-Code": code} if code else {})
        elif repo not in self.hub.repos:
            self.answer(404, headers={"X-Error-Code": "RepoNotFound"})
        elif revision not in self.hub.repos[repo]:
            self.answer(404, headers={"X-Error-Code": "RevisionNotFound"})
        else:
            then(repo, self.hub.repos[repo][revision])

    def refused(self, then):
        """Whether the caller lacks the token for this."""
        closed = self.hub.refuse and not (self.hub.listed and then == self.info)
        return closed and self.headers.get("Authorization") != f"Bearer {self.hub.token}"

    def info(self, repo, commit):
        """The description of a commit: its hash and its files, large ones with their sha256."""
        siblings = []
        for name, data in self.hub.commits[commit].items():
            size = self.hub.listed_size or len(data)
            siblings.append({"rfilename": name, "size": size, "blobId": blob_id(data)})
            if name.endswith(LARGE):
                named = self.hub.listed_sha256 or sha256(data)
                large = {"sha256": named, "size": len(data), "pointerSize": 134}
                siblings[-1]["lfs"] = large
        sha = self.hub.listed_commit or commit
        description = {"id": repo, "modelId": repo, "sha": sha, "siblings": siblings}
        description |= {"private": False, "tags": [], "downloads": 0, "likes": 0}
        self.answer(200, json.dumps(description).encode())

    def resolve(self, repo, commit, name):
        """A small file itself, or for a large one its size, hash and place in the store."""
        data = self.hub.commits[commit][name]
        headers = {"X-Repo-Commit": commit}
        if name in self.hub.absent:
            headers["X-Error-Code"] = "EntryNotFound"
            self.answer(404, headers=headers | self.forged_headers(name))
        elif name.endswith(LARGE):
            headers |= {"X-Linked-Size": str(len(data)), "X-Linked-Etag": f'"{sha256(data)}"'}
            headers["Location"] = f"{self.hub.store}/store/{commit}/{name}"
            self.answer(302, headers=headers | self.forged_headers(name))
        else:
            headers["ETag"] = f'"{blob_id(data)}"'
            headers |= self.forged_headers(name)
            self.send_file(name, self.hub.forged.get(name, data), headers)

    def forged_headers(self, name):
        """The headers that are due in place of the right ones."""
        due = self.hub.headers.get(name, [{}])
        return due.pop(0) if len(due) > 1 else due[0]

    def send_file(self, name, data, headers):
        """Bytes, from the place a Range asks for; half of them where a cut is due."""
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").split("-")[0])
        if start:
            headers = headers | {"Content-Range": f"bytes {start}-{len(data) - 1}/{len(data)}"}
        due = self.command == "GET" and self.hub.cuts.get(name, 0)
        if due:
            self.hub.cuts[name] = due - 1
        self.answer(206 if start else 200, data[start:], headers, part=0.5 if due else 1)

    def answer(self, status, body=b"", headers=None, part=1):
        """Status, headers and (a part of) the body; after a part the connection is dropped."""
        self.send_response(status)
        for key, value in ({"Content-Length": str(len(body))} | (headers or {})).items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: int(len(body) * part)])
        if part < 1:
            self.close_connection = True


def sha256(data):
    """Hex sha256, by which the hub names large files."""
    return hashlib.sha256(data).hexdigest()


def blob_id(data):
    """Git's name of a file, by which the hub names small ones."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
