"""Serve the built site on this machine only, compressed as a real server would: `python book/serve.py [--port 8000]`."""

import argparse
import functools
import gzip
import http.server
import io
from pathlib import Path

SITE = Path(__file__).resolve().parents[1] / "_build" / "site"
TEXT = (".html", ".js", ".css", ".svg", ".json", ".xml", ".txt")


class Handler(http.server.SimpleHTTPRequestHandler):
    """Files as they are, text compressed when the browser takes it."""

    protocol_version = "HTTP/1.1"

    def send_head(self):
        path = Path(self.translate_path(self.path))
        if path.suffix not in TEXT or "gzip" not in self.headers.get("Accept-Encoding", "") or not path.is_file():
            return super().send_head()
        body = gzip.compress(path.read_bytes(), 6)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        return io.BytesIO(body)

    def end_headers(self):
        self.send_header("Cache-Control", "max-age=600")
        super().end_headers()

    def log_message(self, format, *args):
        """Say nothing."""


def server(site: Path, port: int = 0) -> http.server.ThreadingHTTPServer:
    """Ready to serve `site`; port 0 takes any free one."""
    return http.server.ThreadingHTTPServer(("127.0.0.1", port), functools.partial(Handler, directory=str(site)))


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve the built site on this machine.")
    parser.add_argument("--port", type=int, default=8000)
    port = parser.parse_args().port
    if not (SITE / "index.html").is_file():
        raise SystemExit(f"{SITE} is not built yet: run `make` first")
    try:
        with server(SITE, port) as serving:
            print(f"http://localhost:{port}/ · Ctrl-C stops it")  # noqa: T201
            serving.serve_forever()
    except KeyboardInterrupt:
        pass
    except OSError as taken:
        raise SystemExit(f"port {port}: {taken.strerror}; try --port {port + 1}") from None


if __name__ == "__main__":
    main()
