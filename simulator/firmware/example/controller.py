#!/usr/bin/env python3
"""A controller of a Larder hub, whole, as an example to write firmware by.

It was written from two documents alone: protocol/serial/SPEC.md, what a controller says to the hub, and
simulator/board/SPEC.md, how a simulated board is reached. Section numbers below are those of the serial SPEC.

    BOARDS=bins=unix:/tmp/bins.sock npm run simulator
    python3 simulator/firmware/example/controller.py unix:/tmp/bins.sock

Python 3.9 or later, nothing else. One thing happens at a time: what the board tells and what timers bring stands in one
queue, and each is carried through before the next is looked at, as in the main loop of a small processor.
"""

import asyncio
import base64
import hashlib
import json
import re
import secrets
import sys
import time

PROTO = 3
KIND = "example-py"
MAX_LINE = 240
HOST_SILENT_S = 5.0
CAPACITY = 256
REFUSALS = 32
LATE_DROP_S = 60.0
READ_TEMPERATURE_S = 5.0
REPEAT_TEMPERATURE_S = 10.0  # at least once a minute (§9)
NO_HOST = "00000000"
ROOM = 65_536  # bytes of a slot (§12)
TRIAL_S = 180.0
# The public key of simulated boards. A real firmware contains its maker's.
MAKER = "012b80caf3929e06e1d4ba5fa921d4f466ec8f54134f37985a9f1b51911ecc75"

# ---- The line: frames, checksum, fields (§1-§3) ------------------------------------------------------------------------


def crc16(text):
    """CRC-16/CCITT-FALSE (§2). crc16("123456789") is 0x29b1."""
    crc = 0xFFFF
    for byte in text.encode("latin-1"):
        crc ^= byte << 8
        for _ in range(8):
            crc = ((crc << 1) ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc


def integer(most):
    return lambda text: int(text) if re.fullmatch(r"\d{1,10}", text) and int(text) <= most else None


def word(pattern):
    return lambda text: text if re.fullmatch(pattern, text) else None


flag = {"0": False, "1": True}.get
id32 = word("[0-9a-f]{8}")
op_id = word("[0-9a-f]{32}")
dev_id = word("(bin|cabinet|fridge)-[1-9]")
ACTS = "open_door close_door raise_lift lower_lift dispense"
WHYS = "stale_host unknown_device bad_argument busy interlock unsupported memory_fault bad_digest bad_signature"

# What a controller reads: a field's name, how it is read; "?" where it may be absent.
READ = {
    "HELLO": {"proto": integer(99), "host": id32},
    "PING": {"t": integer(999_999_999)},
    "CMD": {
        "host": id32, "op": op_id, "dev": dev_id, "act": word(ACTS.replace(" ", "|")), "max": integer(600_000),
        "shelf?": integer(20), "row?": integer(40), "bin?": integer(4), "ref?": word("[A-Za-z0-9_.:+-]{1,40}"),
    },
    "QRY": {"op": op_id},
    "LST": {"n": integer(256)},
    "OWN": {
        "hub": integer(4_000_000_000), "ctl": word("[a-z][a-z0-9-]{0,30}"), "store": id32, "wipe": flag,
    },
    "FWQ": {"v": integer(99)},
    "IMG": {
        "kind": word("[A-Za-z0-9_.:+-]{1,40}"), "build": integer(4_000_000_000), "size": integer(1_048_576),
        "sum": word("[0-9a-f]{64}"),
    },
    "BLK": {"at": integer(1_048_576), "data": word("[A-Za-z0-9_-]{2,171}")},
    "USE": {"sum": word("[0-9a-f]{64}")},
    "KEEP": {"build": integer(4_000_000_000)},
    "ACK": {"s": word("[0-9a-f]{4}")},
    "NAK": {"s": word("[0-9a-f]{4}"), "why": word(WHYS.replace(" ", "|"))},
}
# What comes from a controller only: an echo, passed over.
OWN_TYPES = {"WELCOME", "PONG", "RES", "OPS", "END", "EVT", "FW"}
# In this order fields are written; what is None is left out.
WRITTEN = {
    "WELCOME": "proto host fw boot mem last count hub ctl store",
    "PONG": "t",
    "RES": "op state why moved drops ms",
    "OPS": "op state why moved drops ms dev act shelf row bin ref",
    "END": "n",
    "EVT": "ev dev door lift occ temp drop op",
    "FW": "kind build trial room sum at",
    "ACK": "s",
    "NAK": "s why",
}
REPEATED = {"WELCOME", "RES", "OPS", "END", "EVT", "FW"}
FRAME = re.compile(r"(~([0-9a-f]{4}) ([A-Z]{2,8})((?: [a-z]+=[A-Za-z0-9_.:+-]+)*))\*([0-9a-f]{4})")


def encode(seq, kind, fields):
    words = ["~%04x" % seq, kind]
    for name in WRITTEN[kind].split():
        value = fields.get(name)
        if value is not None:
            words.append("%s=%s" % (name, int(value) if isinstance(value, bool) else value))
    text = " ".join(words)
    return "%s*%04x" % (text, crc16(text))


def decode(line):
    """(seq, kind, fields), (seq, None, why) for what is whole and not understood, or None for what is dropped (§1)."""
    line = line[:-1] if line.endswith("\r") else line
    match = FRAME.fullmatch(line)
    if len(line) > MAX_LINE or not match or crc16(match[1]) != int(match[5], 16):
        return None
    seq, kind = int(match[2], 16), match[3]
    if kind in OWN_TYPES:
        return (seq, kind, {})
    if kind not in READ:
        return (seq, None, "unsupported")
    fields = {}
    for pair in match[4].split():
        name, value = pair.split("=", 1)
        reader = READ[kind].get(name) or READ[kind].get(name + "?")
        read = reader(value) if reader and name not in fields else None
        if read is None:
            return (seq, None, "bad_argument")
        fields[name] = read
    if any(not name.endswith("?") and name not in fields for name in READ[kind]):
        return (seq, None, "bad_argument")
    return (seq, kind, fields)


# ---- The board (simulator/board/SPEC.md) -------------------------------------------------------------------------------


class PowerCut(Exception):
    pass


class Board:
    """The connection: requests and their answers, events into one queue."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        self.queue = asyncio.Queue()
        self.answers = {}
        self.asked = 0
        self.is_cut = False

    async def listen(self):
        try:
            while line := await self.reader.readline():
                message = json.loads(line)
                if "on" in message:
                    self.queue.put_nowait(message)
                elif message.get("re") in self.answers:
                    self.answers.pop(message["re"]).set_result(message)
        except ConnectionError:
            pass
        finally:
            self.cut()

    def cut(self):
        self.is_cut = True
        for answer in self.answers.values():
            answer.cancel()
        self.queue.put_nowait({"on": "cut"})

    async def ask(self, **request):
        # Events that came before the cut may still be handled after it. Nobody answers then.
        if self.is_cut:
            raise PowerCut()
        self.asked += 1
        answer = self.answers[self.asked] = asyncio.get_running_loop().create_future()
        self.writer.write((json.dumps({"id": self.asked, **request}) + "\n").encode())
        try:
            reply = await answer
        except asyncio.CancelledError:
            raise PowerCut() from None
        if "error" in reply:
            raise RuntimeError("%s: %s" % (request, reply["error"]))
        return reply

    def after(self, seconds, task):
        """Puts `task`, a coroutine function, into the queue later. Returns what cancels it."""
        return asyncio.get_running_loop().call_later(seconds, self.queue.put_nowait, {"on": "timer", "task": task}).cancel


# ---- The memory of operations (§8) -------------------------------------------------------------------------------------


class Memory:
    def __init__(self, board, entries):
        self.board, self.records, self.owner, self.slots = board, {}, None, None
        self.id, self.overwritten, self.entries = None, "", 0
        for entry in entries:
            self.take(entry)

    def take(self, entry):
        self.entries += 1
        if "format" in entry:
            self.id = entry["format"]
        elif "owner" in entry:
            self.owner = entry["owner"]
        elif "overwritten" in entry:
            self.overwritten = entry["overwritten"]
        else:
            self.records[entry["record"]["op"]] = entry["record"]
            if len(self.records) > CAPACITY:
                oldest = next(op for op, record in self.records.items() if record["state"] != "running")
                del self.records[oldest]
                self.overwritten = max(self.overwritten, oldest)

    async def start(self):
        """Formats a blank memory; what ran when the power failed was interrupted."""
        if self.id is None:
            await self.format()
        for record in list(self.records.values()):
            if record["state"] == "running":
                await self.write({"record": {**record, "state": "interrupted"}})

    async def format(self):
        self.records, self.owner, self.overwritten, self.entries = {}, None, "", 0
        self.id = secrets.token_hex(4)
        await self.board.ask(do="replace", entries=self.slots.whole() + self.whole())

    async def write(self, entry):
        await self.board.ask(do="append", entry=entry)
        self.take(entry)
        if self.entries > 8 * CAPACITY:
            await self.compact()

    async def compact(self):
        whole = self.whole()
        await self.board.ask(do="replace", entries=self.slots.whole() + whole)
        self.entries = len(whole)

    def whole(self):
        whole = [{"format": self.id}] + ([{"owner": self.owner}] if self.owner else [])
        whole += [{"overwritten": self.overwritten}] if self.overwritten else []
        return whole + [{"record": record} for record in self.records.values()]

    async def update(self, op, **change):
        if op in self.records:
            await self.write({"record": {**self.records[op], **change}})

    def result(self, op):
        """What QRY answers. `none` only where the operation cannot have been overwritten."""
        if op in self.records:
            return self.records[op]
        forgotten = op <= self.overwritten
        state = "forgotten" if forgotten else "none"
        return {"op": op, "state": state, "moved": forgotten, "drops": 0, "ms": 0}


# ---- The slots of the firmware (§12) -----------------------------------------------------------------------------------

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def add(p, q):
    """The sum of two points of edwards25519 (RFC 8032 §5.1.4)."""
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def times(number, point):
    result = (0, 1, 1, 0)
    while number:
        if number & 1:
            result = add(result, point)
        number, point = number >> 1, add(point, point)
    return result


def point_of(text):
    """The point of its 32 bytes, or None (RFC 8032 §5.1.3)."""
    y = int.from_bytes(text, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if y >= P or (x * x - square) % P or (x == 0 and sign):
        return None
    x = P - x if x & 1 != sign else x
    return (x, y, 1, x * y % P)


BASE = point_of((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))


def signed(message, signature):
    """Whether the maker has signed the message (Ed25519, RFC 8032 §5.1.7)."""
    key = bytes.fromhex(MAKER)
    a, r, s = point_of(key), point_of(signature[:32]), int.from_bytes(signature[32:], "little")
    if a is None or r is None or s >= L:
        return False
    h = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % L
    left, right = times(s, BASE), add(r, times(h, a))
    return all((left[i] * right[2] - right[i] * left[2]) % P == 0 for i in (0, 1))


class Slots:
    """The boot loader, and the image in the free slot. A real one starts the program; this one takes only its number."""

    def __init__(self, board, memory, entries):
        self.board, self.memory, memory.slots = board, memory, self
        self.running = {"build": 1, "state": "kept", "former": 1, "hangs": False}
        self.image, self.blocks = None, []
        for entry in entries:
            self.take(entry)

    @staticmethod
    def owns(entry):
        return bool({"running", "image", "block"} & entry.keys())

    def take(self, entry):
        if "running" in entry:
            self.running = entry["running"]
        elif "image" in entry:
            self.image, self.blocks = entry["image"], []
        else:
            self.blocks.append(entry["block"])

    def whole(self):
        whole = [{"running": self.running}] + ([{"image": self.image}] if self.image else [])
        return whole + [{"block": block} for block in self.blocks]

    def data(self):
        return b"".join(bytes_of(block) for block in self.blocks)

    async def write(self, entry):
        await self.board.ask(do="append", entry=entry)
        self.take(entry)

    async def refill(self, image=None):
        """Empties the free slot, at one instant with the state of the running firmware."""
        self.image, self.blocks = image, []
        await self.board.ask(do="replace", entries=self.whole() + self.memory.whole())

    async def start(self):
        running = self.running
        if running["state"] == "verified":
            await self.write({"running": {**running, "state": "trial"}})
        elif running["state"] == "trial":
            former = running["former"]
            await self.write({"running": {"build": former, "state": "kept", "former": former, "hangs": False}})

    def on_trial(self):
        return self.running["state"] == "trial"

    def about(self):
        image = self.image
        about = {"kind": KIND, "build": self.running["build"], "trial": self.on_trial(), "room": ROOM}
        return {**about, "sum": image and image["sum"], "at": len(self.data()) if image else None}

    async def begin(self, kind, build, size, sum):
        if kind != KIND or build <= self.running["build"] or size > ROOM:
            return "bad_argument"
        if not self.image or self.image["sum"] != sum:
            await self.refill({"kind": kind, "build": build, "size": size, "sum": sum})

    async def store(self, at, data):
        end, stored = at + len(bytes_of(data)), len(self.data())
        if not self.image or end > self.image["size"] or (at != stored and end > stored):
            return "bad_argument"
        if end > stored:
            await self.write({"block": data})

    async def use(self, sum):
        image, data = self.image, self.data()
        if not image or image["sum"] != sum or len(data) != image["size"]:
            return "bad_argument"
        header = b"larder-firmware kind=%s build=%d\n" % (image["kind"].encode(), image["build"])
        why = None if hashlib.sha256(data).hexdigest() == sum else "bad_digest"
        if not why and not (data.startswith(header) and signed(data[:-64], data[-64:])):
            why = "bad_signature"
        if not why:
            former = self.running["build"]
            self.running = {"build": image["build"], "state": "verified", "former": former, "hangs": False}
        await self.refill()
        return why


def bytes_of(block):
    return base64.urlsafe_b64decode(block + "=" * (-len(block) % 4))


# ---- Frames on their way (§4) ------------------------------------------------------------------------------------------


class Outbox:
    WINDOW = 8

    def __init__(self, board):
        self.board, self.seq = board, secrets.randbelow(0x10000)
        self.waiting, self.under_way = [], {}

    async def once(self, kind, **fields):
        line = encode(self.seq, kind, fields)
        self.seq = (self.seq + 1) % 0x10000
        await self.board.ask(do="send", line=line)

    async def send(self, kind, fields, then=None):
        self.waiting.append((kind, fields, then))
        await self.pump()

    async def pump(self):
        index = 0
        while index < len(self.waiting) and len(self.under_way) < self.WINDOW:
            kind, fields, then = self.waiting[index]
            ahead = [frame["kind"] for frame in self.under_way.values()] + [one[0] for one in self.waiting[:index]]
            if self.must_wait(kind, ahead):
                index += 1
                continue
            del self.waiting[index]
            seq = self.seq
            self.seq = (seq + 1) % 0x10000
            frame = {"kind": kind, "line": encode(seq, kind, fields), "then": then}
            self.under_way[seq] = frame
            await self.transmit(seq, frame, 0.025)

    @staticmethod
    def must_wait(kind, ahead):
        """Nothing overtakes WELCOME; events keep their order; END follows every OPS."""
        after = {"EVT": "EVT", "END": "OPS", "OPS": "END"}.get(kind)
        return "WELCOME" in ahead or after in ahead

    async def transmit(self, seq, frame, delay):
        async def again():
            if self.under_way.get(seq) is frame:
                await self.transmit(seq, frame, min(0.4, delay * 2))

        frame["cancel"] = self.board.after(delay, again)
        await self.board.ask(do="send", line=frame["line"])

    async def answered(self, seq):
        frame = self.under_way.pop(seq, None)
        if not frame:
            return
        frame["cancel"]()
        if frame["then"]:
            await frame["then"]()
        await self.pump()

    def clear(self):
        for frame in self.under_way.values():
            frame["cancel"]()
        self.under_way, self.waiting = {}, []


# ---- The controller ----------------------------------------------------------------------------------------------------

GOALS = {
    "open_door": ("door", "open"), "close_door": ("door", "closed"),
    "raise_lift": ("lift", "up"), "lower_lift": ("lift", "down"),
}


class Controller:
    def __init__(self, board, power):
        self.board = board
        self.devices = {"%s-%d" % (one["kind"], one["number"]): one for one in power["devices"]}
        self.drop_window = power["drop_window_ms"] / 1000
        self.memory = Memory(board, [entry for entry in power["flash"] if not Slots.owns(entry)])
        self.slots = Slots(board, self.memory, [entry for entry in power["flash"] if Slots.owns(entry)])
        self.outbox = Outbox(board)
        self.boot = secrets.token_hex(4)
        self.host, self.welcomed, self.heard_at = None, False, 0.0
        self.refusals = {}
        self.running = {}  # device -> the operation that it carries out
        self.latest = {}  # cabinet -> (its latest operation, when that ended)
        self.events, self.reported, self.stale, self.drops = 0, {}, [], []
        self.repeated_at = {}  # fridge -> when its temperature was last reported
        self.event_under_way = False

    async def start(self):
        await self.memory.start()
        await self.slots.start()
        if self.slots.on_trial():
            self.board.after(TRIAL_S, self.end_trial)
        await self.outbox.once("WELCOME", **self.welcome(NO_HOST))
        self.board.after(1, self.watch_host)
        self.board.after(READ_TEMPERATURE_S, self.read_temperatures)

    async def event(self, event):
        on = event["on"]
        if on == "line":
            await self.line(event["line"])
        elif on == "sense":
            await self.sense(event["device"])
        elif on == "end":
            await self.motor_ended(event["device"], event["end"], event["moved"])
        elif on == "drop":
            await self.fell(event["device"], event["units"])

    # -- Session (§5)

    async def line(self, line):
        decoded = decode(line)
        if decoded is None:
            return
        seq, kind, fields = decoded
        if kind is None:
            return await self.nak(seq, fields)
        self.heard_at = time.monotonic()
        handler = getattr(self, "on_" + kind.lower(), None)
        if handler:
            await handler(seq, **fields)

    async def ack(self, seq):
        await self.outbox.once("ACK", s="%04x" % seq)

    async def nak(self, seq, why):
        await self.outbox.once("NAK", s="%04x" % seq, why=why)

    def welcome(self, host):
        memory = self.memory
        last = next(reversed(memory.records), None)
        about = {"proto": PROTO, "host": host, "fw": "%s-%d" % (KIND, self.slots.running["build"]), "boot": self.boot, "mem": memory.id}
        return {**about, "last": last, "count": len(memory.records), **(memory.owner or {})}

    async def on_hello(self, seq, proto, host):
        await self.ack(seq)
        if proto != PROTO:
            await self.end_session()
            return await self.outbox.once("WELCOME", **self.welcome(host))
        if host == self.host:
            return
        await self.end_session()
        self.host = host
        await self.board.ask(do="lamp", shows="begun")

        async def acknowledged():
            self.welcomed = True
            await self.board.ask(do="lamp", shows="on")
            self.reported, self.stale = {}, list(self.devices)
            await self.report()

        await self.outbox.send("WELCOME", self.welcome(host), acknowledged)

    async def end_session(self):
        if self.host is not None:
            await self.board.ask(do="lamp", shows="off")
        self.host, self.welcomed = None, False
        self.refusals, self.event_under_way = {}, False
        self.outbox.clear()

    async def watch_host(self):
        self.board.after(0.2, self.watch_host)
        if self.host is not None and time.monotonic() - self.heard_at > HOST_SILENT_S:
            await self.end_session()

    async def on_ping(self, seq, t):
        if self.host is not None:
            await self.outbox.once("PONG", t=t)

    async def on_ack(self, seq, s):
        await self.outbox.answered(int(s, 16))

    async def on_nak(self, seq, s, why):
        await self.outbox.answered(int(s, 16))

    async def accept(self, seq):
        """Acknowledges a question of the session there is."""
        if self.host is None:
            await self.nak(seq, "stale_host")
            return False
        await self.ack(seq)
        return True

    async def on_qry(self, seq, op):
        if await self.accept(seq):
            await self.outbox.send("RES", self.memory.result(op))

    async def on_lst(self, seq, n):
        if await self.accept(seq):
            newest = list(self.memory.records.values())[-n:] if n else []
            for record in newest:
                await self.outbox.send("OPS", record)
            await self.outbox.send("END", {"n": len(newest)})

    async def on_own(self, seq, wipe, **owner):
        """Whose this controller is (§8)."""
        if self.host is None:
            return await self.nak(seq, "stale_host")
        if self.memory.owner != owner:
            if wipe and self.running:
                return await self.nak(seq, "busy")
            if not (await self.board.ask(do="flash"))["ok"]:
                return await self.nak(seq, "memory_fault")
            if wipe:
                await self.memory.format()
            await self.memory.write({"owner": owner})
        await self.ack(seq)

    # -- Updates of the firmware (§12)

    async def end_trial(self):
        if self.slots.on_trial():
            await self.board.ask(do="reset")

    async def on_fwq(self, seq, v):
        if await self.accept(seq):
            await self.outbox.send("FW", self.slots.about())

    async def step(self, seq, work, *given, frozen=True):
        why = "stale_host" if self.host is None else None
        why = why or ("busy" if self.running or (frozen and self.slots.on_trial()) else None)
        why = why or (None if (await self.board.ask(do="flash"))["ok"] else "memory_fault")
        why = why or await work(*given)
        await (self.nak(seq, why) if why else self.ack(seq))
        return not why

    async def on_img(self, seq, kind, build, size, sum):
        await self.step(seq, self.slots.begin, kind, build, size, sum)

    async def on_blk(self, seq, at, data):
        await self.step(seq, self.slots.store, at, data)

    async def on_use(self, seq, sum):
        if await self.step(seq, self.slots.use, sum):
            await self.board.ask(do="reset")

    async def on_keep(self, seq, build):
        async def keep():
            if build != self.slots.running["build"]:
                return "bad_argument"
            if self.slots.on_trial():
                await self.slots.write({"running": {**self.slots.running, "state": "kept"}})

        await self.step(seq, keep, frozen=False)

    # -- Operations (§6)

    async def read(self, device, pin):
        return (await self.board.ask(do="read", device=device, pin=pin))["value"]

    async def on_cmd(self, seq, host, op, dev, act, max, **place):
        if host != self.host:
            return await self.nak(seq, "stale_host")
        if op in self.memory.records:
            await self.ack(seq)
            return await self.outbox.send("RES", self.memory.result(op))
        why = self.refusals.get(op) or await self.refusal(dev, act, max, place)
        if why:
            self.refusals[op] = why
            while len(self.refusals) > REFUSALS:
                del self.refusals[next(iter(self.refusals))]
            return await self.nak(seq, why)
        fresh = {"op": op, "state": "running", "moved": True, "drops": 0, "ms": 0, "dev": dev, "act": act}
        # Durable first, then ACK, then the motor.
        await self.memory.write({"record": {**fresh, **place}})
        await self.ack(seq)
        await self.begin(op, dev, act, max, place)

    async def refusal(self, dev, act, max, place):
        device = self.devices.get(dev)
        if device is None:
            return "unknown_device"
        if device["kind"] == "fridge" or (act == "dispense") != (device["kind"] == "cabinet"):
            return "unsupported"
        if max == 0:
            return "bad_argument"
        receiving = {"bin-%s" % run["place"].get("bin") for run in self.running.values()}
        if dev in self.running or dev in receiving:
            return "busy"
        if act == "dispense":
            rows = {one["shelf"]: one["rows"] for one in device["shelves"]}.get(place.get("shelf"), 0)
            if not 1 <= place.get("row", 0) <= rows or not place.get("bin"):
                return "bad_argument"
            target = "bin-%d" % place["bin"]
            if target in self.running:
                return "busy"
            if target in self.devices:
                if await self.read(target, "door") != "closed" or await self.read(target, "lift") != "down":
                    return "interlock"
        elif act.endswith("_lift") and await self.read(dev, "door") != "closed":
            return "interlock"
        return None if (await self.board.ask(do="flash"))["ok"] else "memory_fault"

    async def begin(self, op, dev, act, max, place):
        if act == "dispense":
            self.latest[dev] = (op, None)
        elif await self.read(dev, GOALS[act][0]) == GOALS[act][1]:
            return await self.conclude(op, None, False, 0)
        if not (await self.board.ask(do="supply", device=dev))["ok"]:
            return await self.conclude(op, "power", False, 0)
        run = {"op": op, "act": act, "place": place, "at": time.monotonic(), "ms": None}

        async def timeout():
            # By this controller alone, whatever the host does meanwhile (I7).
            if self.running.get(dev) is run:
                await self.board.ask(do="stop", device=dev)
                await self.finish(dev, "timeout", True)

        run["cancel"] = self.board.after(max / 1000, timeout)
        self.running[dev] = run
        where = {name: place[name] for name in ("shelf", "row", "bin") if name in place and act == "dispense"}
        await self.board.ask(do="run", device=dev, action=act, op=op, **where)

    def motor_off(self, run):
        if run["ms"] is None:
            run["ms"] = round((time.monotonic() - run["at"]) * 1000)
            run["cancel"]()

    async def motor_ended(self, dev, end, moved):
        run = self.running.get(dev)
        if run is None:
            return
        self.motor_off(run)
        if run["act"] == "dispense":
            return await self.turn_ended(dev, run, end, moved)
        if end != "arrived":
            return await self.finish(dev, "jam" if end == "stalled" else "obstructed", moved)
        pin, goal = GOALS[run["act"]]
        await self.finish(dev, None if await self.read(dev, pin) == goal else "sensor_fault", moved)

    async def turn_ended(self, dev, run, end, moved):
        def dropped():
            return self.memory.records[run["op"]]["drops"] > 0

        why = "no_drop" if end == "arrived" else "jam"
        if not moved or (end == "arrived" and dropped()):
            return await self.finish(dev, None if moved else why, moved)

        async def window_over():
            if self.running.get(dev) is run:
                await self.finish(dev, None if end == "arrived" and dropped() else why, moved)

        self.board.after(self.drop_window, window_over)

    async def finish(self, dev, why, moved):
        run = self.running.pop(dev)
        self.motor_off(run)
        await self.conclude(run["op"], why, moved, run["ms"])

    async def conclude(self, op, why, moved, ms):
        """Writes the result, then sends it."""
        state = "failed" if why else "done"
        await self.memory.update(op, state=state, why=why, moved=moved, ms=min(600_000, ms))
        for cabinet, (latest, _) in self.latest.items():
            if latest == op:
                self.latest[cabinet] = (op, time.monotonic())
        if self.host is not None:
            await self.outbox.send("RES", self.memory.result(op))

    async def fell(self, dev, units):
        """Each fall is written at once, before anything follows from it (§8)."""
        if dev in self.running:
            op = self.running[dev]["op"]
            return await self.memory.update(op, drops=self.memory.records[op]["drops"] + units)
        op, at = self.latest.get(dev, (None, None))
        known = op in self.memory.records and at is not None and time.monotonic() - at <= LATE_DROP_S
        if known:
            await self.memory.update(op, drops=self.memory.records[op]["drops"] + units)
        self.events += 1
        self.drops.append({"ev": self.events, "dev": dev, "drop": units, "op": op if known else None})
        await self.report()

    # -- What is sensed (§9)

    async def sense(self, dev):
        run = self.running.get(dev)
        if run and run["act"].endswith("_lift") and await self.read(dev, "door") != "closed":
            moved = (await self.board.ask(do="stop", device=dev))["moved"]
            await self.finish(dev, "interlock", moved)
        await self.mark(dev)

    async def mark(self, dev):
        if dev not in self.stale:
            self.stale.append(dev)
        await self.report()

    async def read_temperatures(self):
        self.board.after(READ_TEMPERATURE_S, self.read_temperatures)
        for dev in self.devices:
            if dev.startswith("fridge"):
                await self.mark(dev)

    async def sensed(self, dev):
        if dev.startswith("bin"):
            return {pin: await self.read(dev, pin) for pin in ("door", "lift", "occ")}
        if dev.startswith("fridge"):
            celsius = await self.read(dev, "temp")
            if celsius is None:
                return {"temp": "none"}
            temp = round(celsius * 100) + 10_000
            before = self.reported.get(dev, {}).get("temp")
            return {"temp": before if isinstance(before, int) and abs(temp - before) < 10 else temp}
        return {}

    async def report(self):
        """One event under way at a time; states are merged meanwhile, drops never."""
        if self.event_under_way or not self.welcomed:
            return
        event, drop = None, None
        if self.drops:
            event = drop = self.drops[0]
        while event is None and self.stale:
            dev = self.stale.pop(0)
            sensed = await self.sensed(dev)
            is_due = "temp" in sensed and time.monotonic() - self.repeated_at.get(dev, 0) >= REPEAT_TEMPERATURE_S
            if self.reported.get(dev) != sensed or is_due:
                self.reported[dev] = sensed
                self.repeated_at[dev] = time.monotonic()
                self.events += 1
                event = {"ev": self.events, "dev": dev, **sensed}
        if event is None:
            return
        self.event_under_way = True

        async def acknowledged():
            self.event_under_way = False
            if drop:
                self.drops.remove(drop)
            await self.report()

        await self.outbox.send("EVT", event, acknowledged)


# ---- One life after the other ------------------------------------------------------------------------------------------


async def live(address):
    """From the board's power to its loss."""
    kind, _, where = address.partition(":")
    limit = 2_097_152
    if kind == "unix":
        reader, writer = await asyncio.open_unix_connection(where, limit=limit)
    else:
        name, _, port = where.rpartition(":")
        reader, writer = await asyncio.open_connection(name, int(port), limit=limit)
    board = Board(reader, writer)
    listening = asyncio.ensure_future(board.listen())
    controller = None
    try:
        while True:
            event = await board.queue.get()
            if event["on"] == "cut":
                return
            if event["on"] == "power":
                controller = Controller(board, event)
                await controller.start()
            elif event["on"] == "timer":
                await event["task"]()
            elif controller:
                await controller.event(event)
    except PowerCut:
        return
    finally:
        listening.cancel()
        writer.close()


async def main(address):
    while True:
        try:
            await live(address)
        except OSError:
            pass
        await asyncio.sleep(0.05)


if __name__ == "__main__":
    if len(sys.argv) != 2 or not re.match(r"unix:.+|tcp:.+:\d+$", sys.argv[1]):
        sys.exit("controller.py unix:PATH | tcp:HOST:PORT\n\nA controller for a simulated board (simulator/board/SPEC.md).")
    try:
        asyncio.run(main(sys.argv[1]))
    except KeyboardInterrupt:
        pass
