"""A shop that knows each customer by the token of its login, and says a line about each request.

It listens on a free port, which its first line says. The words behind its name: `close` ends each connection behind its
response, `broken` has a 500 for each tenth customer's page.
"""

import gzip
import http.server
import json
import sys
import threading

LOCK = threading.Lock()
CUSTOMERS = {}  # token -> customer


class Shop(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        super().setup()
        self.wfile = self.connection.makefile("wb", -1)  # One segment for a response.

    def log_message(self, *_):
        pass

    def respond(self, status, body=b"", chunked=False, **fields):
        with LOCK:
            print(self.command, self.path, self.customer(), status, flush=True)
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        if "close" in sys.argv:
            self.send_header("Connection", "close")
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
            parts = [body[:5], body[5:], b""]
            body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
        elif status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def customer(self):
        """Who asks: the one whom both the token and the cookie are of."""
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        customer = CUSTOMERS.get(token)
        is_same = self.headers.get("Cookie") == f"customer={customer}"
        return customer if is_same else "nobody"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/login":
            customer = json.loads(body)["customer"]
            with LOCK:
                token = f"t{len(CUSTOMERS)}/{customer}"
                CUSTOMERS[token] = customer
            text = json.dumps({"token": token}).encode()
            return self.respond(200, text, chunked=True, Set_Cookie=f"customer={customer}; Path=/")
        if self.customer() == "nobody":
            return self.respond(401)
        self.respond(204, Set_Cookie="customer=; Max-Age=0")

    def do_GET(self):
        customer = self.customer()
        if customer == "nobody":
            return self.respond(401)
        if self.path == "/items":
            page = f'<a href="/items/{customer}7">yours</a>'.encode()
            wanted = self.headers.get("Accept-Encoding", "")
            if wanted == "gzip":
                return self.respond(200, gzip.compress(page), Content_Encoding="gzip")
            if wanted == "br":
                return self.respond(200, b"\x0b\x02\x80" + page, Content_Encoding="br")
            return self.respond(200, page)
        if self.path == f"/items/{customer}7":
            return self.respond(302, Location=f"{customer}7/page?of={customer}")
        if self.path == f"/items/{customer}7/page?of={customer}":
            if "broken" in sys.argv and int(customer) % 10 == 3:
                return self.respond(500)
            return self.respond(200, json.dumps({"stock": 5, "id": f"{customer}7"}).encode())
        self.respond(404)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


server = Server(("127.0.0.1", 0), Shop)
print("listening on", server.server_address[1], flush=True)
server.serve_forever()
