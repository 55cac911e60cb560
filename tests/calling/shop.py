"""A server of gRPC with a service of one's own: shop.py DESCRIPTORS [CERTIFICATE KEY].

It writes the descriptor set of its interface to DESCRIPTORS, says where it listens, and logs a line for each call. What a call
is answered with stands in its message.
"""

import concurrent.futures
import sys
import threading
import time

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

FIELD = descriptor_pb2.FieldDescriptorProto


def interface():
    """shop.Shop, whose messages are orders and receipts."""
    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    for name, fields in (
        ("Order", (("name", FIELD.TYPE_STRING), ("item_count", FIELD.TYPE_UINT32), ("sleep_ms", FIELD.TYPE_UINT32),
                   ("code", FIELD.TYPE_UINT32), ("filling", FIELD.TYPE_BYTES))),
        ("Receipt", (("text", FIELD.TYPE_STRING), ("filling", FIELD.TYPE_BYTES))),
    ):
        message = file.message_type.add(name=name)
        for number, (field, kind) in enumerate(fields, 1):
            message.field.add(name=field, number=number, type=kind, label=FIELD.LABEL_OPTIONAL)
    service = file.service.add(name="Shop")
    service.method.add(name="Buy", input_type=".shop.Order", output_type=".shop.Receipt")
    service.method.add(name="Watch", input_type=".shop.Order", output_type=".shop.Receipt", server_streaming=True)
    return file


FILE = interface()
POOL = descriptor_pool.DescriptorPool()
POOL.Add(FILE)
# Protobuf has had the first from 4.22 on, and the other up to 4.25.
MESSAGE_CLASS = getattr(message_factory, "GetMessageClass", None) or message_factory.MessageFactory(POOL).GetPrototype
ORDER, RECEIPT = (MESSAGE_CLASS(POOL.FindMessageTypeByName(name)) for name in ("shop.Order", "shop.Receipt"))
LOG = threading.Lock()
CODES = {code.value[0]: code for code in grpc.StatusCode}


def receipt(order, context):
    said = dict(context.invocation_metadata())
    left = context.time_remaining()
    has_deadline = "deadline" if left is not None and left < 1e6 else "none"
    # Calls are answered by several threads: a line and its end are written together.
    with LOG:
        print(order.name, order.item_count, len(order.filling), said.get("x-user", "-"), has_deadline, flush=True)
    time.sleep(order.sleep_ms / 1000)
    if order.code:
        context.abort(CODES[order.code], "as asked")
    return RECEIPT(text="for " + order.name, filling=order.filling)


def buy(order, context):
    return receipt(order, context)


def watch(order, context):
    for _ in range(order.item_count):
        yield receipt(order, context)


def main():
    descriptors, *tls = sys.argv[1:]
    with open(descriptors, "wb") as file:
        file.write(descriptor_pb2.FileDescriptorSet(file=[FILE]).SerializeToString())
    coding = {"request_deserializer": ORDER.FromString, "response_serializer": RECEIPT.SerializeToString}
    handlers = {
        "Buy": grpc.unary_unary_rpc_method_handler(buy, **coding),
        "Watch": grpc.unary_stream_rpc_method_handler(watch, **coding),
    }
    workers = concurrent.futures.ThreadPoolExecutor(max_workers=8)
    server = grpc.server(workers, options=[("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)])
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("shop.Shop", handlers),))
    if tls:
        certificate, key = (open(name, "rb").read() for name in tls)
        port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(key, certificate)]))
    else:
        port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(f"listening on 127.0.0.1:{port}", flush=True)
    server.wait_for_termination()


main()
