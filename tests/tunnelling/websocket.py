#!/usr/bin/env python3
"""WebSocket by programs of others. As `server`: Debian's python3-websockets, which sends back what it gets, compresses and has
the sub-protocol `echo`. As `client HOST PORT`: python3-h2 and python3-wsproto, over HTTP/2 (RFC 8441): two conversations on one
connection, a request between them, and what is no WebSocket. As `old-client HOST PORT`: python3-websockets over HTTP/1.1, two
conversations at the same time."""

import asyncio
import random
import socket
import sys


async def serve():
    import websockets

    # Older versions hand it the path, too.
    async def echo(connection, *_path):
        async for message in connection:
            await connection.send(message)

    server = await websockets.serve(
        echo, "127.0.0.1", 0, subprotocols=["echo"], max_size=None
    )
    print("listening on port", server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Future()


class Client:
    def __init__(self, host, port):
        from h2.config import H2Configuration
        from h2.connection import H2Connection

        self.socket = socket.create_connection((host, int(port)), timeout=60)
        self.http = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self.http.initiate_connection()
        self.heads, self.data, self.over, self.resets = {}, {}, set(), {}
        self.settings = None

    def step(self):
        from h2 import events

        self.socket.sendall(self.http.data_to_send())
        received = self.socket.recv(65536)
        assert received, "the connection ended"
        for event in self.http.receive_data(received):
            stream = getattr(event, "stream_id", 0)
            if isinstance(event, events.RemoteSettingsChanged):
                self.settings = event.changed_settings
            elif isinstance(event, events.ResponseReceived):
                self.heads[stream] = dict(event.headers)
            elif isinstance(event, events.DataReceived):
                self.data[stream] = self.data.get(stream, b"") + event.data
                if event.flow_controlled_length:
                    self.http.acknowledge_received_data(event.flow_controlled_length, stream)
            elif isinstance(event, events.StreamEnded):
                self.over.add(stream)
            elif isinstance(event, events.StreamReset):
                self.resets[stream] = event.error_code
            else:
                assert not isinstance(event, events.ConnectionTerminated), event

    def until(self, condition):
        while not condition():
            self.step()

    def open(self, fields, end=False):
        stream = self.http.get_next_available_stream_id()
        self.http.send_headers(stream, fields, end_stream=end)
        return stream

    def connect(self, path, more=(), protocol="websocket"):
        pseudo = [
            (":method", "CONNECT"),
            (":protocol", protocol),
            (":scheme", "http"),
            (":path", path),
            (":authority", "example.org"),
        ]
        return self.open(pseudo + [("sec-websocket-version", "13"), *more])

    def send(self, stream, data):
        while data:
            room = self.http.local_flow_control_window(stream)
            piece = min(room, self.http.max_outbound_frame_size, len(data))
            if piece == 0:
                self.step()
                continue
            self.http.send_data(stream, data[:piece])
            data = data[piece:]


def converse(client, path):
    from wsproto import events
    from wsproto.connection import Connection, ConnectionType
    from wsproto.extensions import PerMessageDeflate

    deflate = PerMessageDeflate()
    more = [
        ("sec-websocket-protocol", "echo"),
        ("sec-websocket-extensions", "permessage-deflate; " + deflate.offer()),
    ]
    stream = client.connect(path, more)
    client.until(lambda: stream in client.heads)
    head = client.heads[stream]
    assert head[":status"] == "200", head
    assert head["sec-websocket-protocol"] == "echo", head
    assert "sec-websocket-accept" not in head and "upgrade" not in head, head
    name, _, parameters = head["sec-websocket-extensions"].partition(";")
    assert name == "permessage-deflate", head
    deflate.finalize(parameters)
    talk = Connection(ConnectionType.CLIENT, extensions=[deflate])
    messages = ["Hello", "a" * 200_000, "", "end"]
    for message in messages:
        client.send(stream, talk.send(events.TextMessage(data=message)))
        heard, is_whole = "", False
        while not is_whole:
            client.until(lambda: client.data.get(stream))
            talk.receive_data(client.data.pop(stream))
            for event in talk.events():
                assert isinstance(event, events.TextMessage), event
                heard += event.data
                is_whole = event.message_finished
        assert heard == message, (len(heard), len(message))
    client.send(stream, talk.send(events.CloseConnection(code=1000)))
    client.until(lambda: stream in client.over)
    talk.receive_data(client.data.pop(stream))
    closed = list(talk.events())
    assert [(type(it), it.code) for it in closed] == [(events.CloseConnection, 1000)], closed
    client.http.end_stream(stream)


def ask(host, port):
    client = Client(host, port)
    client.until(lambda: client.settings is not None)
    offered = client.settings[8].new_value
    assert offered == 1, client.settings
    converse(client, "/chat")
    other = client.connect("/chat", protocol="connect-udp")
    client.until(lambda: other in client.over)
    assert client.heads[other][":status"] == "501", client.heads[other]
    # python3-websockets says so to who does not ask for an upgrade.
    plain = client.open(
        [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a")], end=True
    )
    client.until(lambda: plain in client.over)
    assert client.heads[plain][":status"] == "426", client.heads[plain]
    converse(client, "/again")
    print("done", flush=True)


async def ask_by_http1(host, port):
    import websockets

    async def converse(messages):
        url = f"ws://{host}:{port}/chat"
        async with websockets.connect(url, subprotocols=["echo"], max_size=None) as talk:
            assert talk.subprotocol == "echo", talk.subprotocol
            # Newer versions keep them elsewhere.
            extensions = getattr(talk, "extensions", None) or talk.protocol.extensions
            names = [extension.name for extension in extensions]
            assert names == ["permessage-deflate"], names
            for message in messages:
                await talk.send(message)
                heard = await talk.recv()
                assert heard == message, (len(heard), len(message))
        assert talk.close_code == 1000, talk.close_code

    noise = random.Random(1).randbytes(2_000_000)
    await asyncio.gather(converse(["Hello", "a" * 200_000, "", "end"]), converse([noise, b"end"]))
    print("done", flush=True)


if sys.argv[1] == "server":
    asyncio.run(serve())
elif sys.argv[1] == "old-client":
    asyncio.run(ask_by_http1(*sys.argv[2:]))
else:
    ask(*sys.argv[2:])
