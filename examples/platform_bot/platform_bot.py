"""A bot behind everloop's platform door, with nothing but the standard library: what is typed here is a message on the
platform `demo`, and what the agent says there, also by itself, is printed. Kill it whenever you like: what it has not
confirmed comes again, and what it has printed is remembered in a file, so that nobody reads it twice.

    export BOT_TOKEN=$(everloop tokens create demo-bot --platform demo --scope chat --scope approve)
    python platform_bot.py
"""

import json
import os
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

TOKEN = os.environ.get("BOT_TOKEN") or sys.exit("BOT_TOKEN is not set: the first lines of this file say how.")
GATEWAY = os.environ.get("BOT_GATEWAY", "http://127.0.0.1:18790")
SEEN = Path(os.environ.get("BOT_SEEN", "platform_bot.seen"))  # ids of what was shown: a bot's own database
HERE = {"platform": "demo", "platform_user_id": os.environ.get("USER", "me"), "attended": True}


def call(method, path, body=None):
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(GATEWAY + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as refused:  # the gateway says why
        raise OSError(f"{refused.code}: {refused.read(1000).decode(errors='replace')}") from None


def show(ids, text):
    """Once, whatever happens in between: first it is remembered, then it is confirmed."""
    if not any(id in SEEN.read_text().split() for id in ids):
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
        SEEN.write_text(SEEN.read_text() + "".join(f"{id}\n" for id in ids))


def listen():
    while True:
        try:
            for item in call("GET", "/message/outbox?wait=30&platform=demo")["items"]:
                asks = f"\n  ({item['approval']['allow']} or {item['approval']['deny']})" if item["approval"] else ""
                show([item["id"], *item["in_reply_to"]], f"everloop: {item['content']}{asks}")
                call("POST", "/message/outbox/receipts", {"receipts": [{"id": item["id"]}]})
        except OSError as error:  # the gateway is not there: it comes back
            sys.stderr.write(f"(the gateway: {error})\n")
            time.sleep(2)


SEEN.touch()
threading.Thread(target=listen, daemon=True).start()
for number, line in enumerate(sys.stdin):
    id = f"{os.getpid()}-{time.time_ns()}-{number}"
    try:
        answer = call("POST", "/message", {**HERE, "content": line.strip(), "id": id})
    except OSError as error:
        sys.stderr.write(f"(no answer: {error})\n")
    else:
        if not answer.get("waiting"):
            show([id], f"everloop: {answer['content']}")
