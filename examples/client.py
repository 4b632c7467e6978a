# SPDX-License-Identifier: Apache-2.0
"""A client of the agent: after `probing PID listen 127.0.0.1:3344`, `python client.py 127.0.0.1:3344` prints the function of each thread.
Needs the packages websockets and msgpack; src/wire/wire.h describes the messages."""
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
