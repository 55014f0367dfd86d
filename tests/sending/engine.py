"""An engine that answers as it is told, and what its requests say."""
import http.server
import ssl
import threading


class Engine(http.server.ThreadingHTTPServer):
    """Answers each request with the next of `answers` (status, headers, body), the last one for ever."""

    def __init__(self, tls=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers, self.requests = [(200, {}, b"")], []
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def expect(self, *answers):
        self.answers, self.requests = list(answers), []

    def handle_error(self, request, client_address):
        pass  # a client that does not trust it


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.path, dict(self.headers), body))
        answers = self.server.answers
        status, headers, answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if status == 0:  # half of a body
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"half")
            self.close_connection = True
            return
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def varint(message, at):
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(message):
    """(number, value) of each field of a protobuf message: numbers, and the bytes of strings and messages."""
    at = 0
    while at < len(message):
        tag, at = varint(message, at)
        if tag & 7 == 1:
            value, at = int.from_bytes(message[at:at + 8], "little"), at + 8
        else:
            value, at = varint(message, at)
        if tag & 7 == 2:
            at += value
            value = message[at - value:at]
        yield tag >> 3, value


def unpacked(numbers):
    """Of a packed field."""
    all_of_them, at = [], 0
    while at < len(numbers):
        one, at = varint(numbers, at)
        all_of_them.append(one)
    return all_of_them
