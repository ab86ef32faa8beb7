"""A WebSocket server that answers every message with the same text: `python echo_server.py TEXT`.

Its speed is that of a bridge whose steps take no time.
"""

import asyncio
import sys

from picows import WSListener, WSMsgType, ws_create_server

from hotlap.bridge.server import new_event_loop


class EchoListener(WSListener):
    def __init__(self, text: bytes) -> None:
        self._text = text

    def on_ws_frame(self, transport, frame) -> None:
        if frame.msg_type == WSMsgType.CLOSE:
            transport.disconnect()
        else:
            transport.send(WSMsgType.TEXT, self._text)


async def serve(text: bytes) -> None:
    server = await ws_create_server(lambda request: EchoListener(text), "127.0.0.1", 0, use_aiofastnet=False)
    print(f"[bridge] listening on ws://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    new_event_loop().run_until_complete(serve(sys.argv[1].encode()))
