# SPDX-License-Identifier: Apache-2.0
"""A service that does something ten times a second.

fine: IDLE
"""
import asyncio

from fault_job import ready


async def beat():
    while True:
        await asyncio.sleep(0.1)


async def main():
    await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    ready()
    await asyncio.gather(*(beat() for _ in range(20)))


asyncio.run(main())
