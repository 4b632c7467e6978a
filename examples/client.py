# SPDX-License-Identifier: Apache-2.0
"""The agent from a program of one's own: probing PID listen 127.0.0.1:3344, then python client.py 127.0.0.1:3344 says where each thread is.
Needs the packages websockets and msgpack; src/wire/wire.h says what messages there are."""
import asyncio, sys, msgpack, websockets


async def main(address):
    async with websockets.connect(f"ws://{address}/", subprotocols=["probing.v1"]) as ws:
        for number, (method, params) in enumerate([("hello", {"version": 2, "client": "example"}), ("threads", {})]):
            await ws.send(msgpack.packb([0, number, method, params]))
            _, _, error, seen = msgpack.unpackb(await ws.recv())
            error and sys.exit(f"{method}: {error}")
    for tid, name, stack in zip(*(seen["threads"][key] for key in ("tid", "name", "stack"))):
        where = seen["strings"][seen["frames"]["func"][stack[0]]] if stack else "no Python"
        print(f"{tid:8} {seen['strings'][name]:20} {where}")

asyncio.run(main(sys.argv[1]))
