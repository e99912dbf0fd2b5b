import { expect, test } from 'vitest'
import {
  Errno,
  FOPEN_DIRECT_IO,
  IN_HEADER_SIZE,
  Opcode,
  OUT_HEADER_SIZE,
} from '../../../../simulator/mounts/gpio/fuse-messages.ts'
import { createFuseServer, type FileTree } from '../../../../simulator/mounts/gpio/fuse-server.ts'

const FILE = 2
const POLLPRI = 2

function setUp() {
  const state = { text: '0\n', events: 1 }
  const tree: FileTree = {
    attributes: (node) =>
      node === FILE
        ? { node, kind: 'file', permissions: 0o644 }
        : node === 1
          ? { node, kind: 'folder', permissions: 0o755 }
          : Errno.ENOENT,
    lookup: (_, name) => (name === 'value' ? { node: FILE, kind: 'file', permissions: 0o644 } : Errno.ENOENT),
    list: () => [{ node: FILE, kind: 'file', name: 'value' }],
    read: () => state.text,
    write: (_, text) => (text === 'bad' ? Errno.EINVAL : void (state.text = text)),
    events: () => state.events,
  }
  const server = createFuseServer(tree)
  /** Sends a request and returns the reply's error and body. */
  function ask(opcode: number, body: Buffer, node = FILE): { errno: number; body: Buffer } | undefined {
    const head = Buffer.alloc(IN_HEADER_SIZE)
    head.writeUInt32LE(IN_HEADER_SIZE + body.length, 0)
    head.writeUInt32LE(opcode, 4)
    head.writeBigUInt64LE(9n, 8)
    head.writeBigUInt64LE(BigInt(node), 16)
    const reply = server.answer(Buffer.concat([head, body]))
    return reply && { errno: 0 - reply.readInt32LE(4), body: reply.subarray(OUT_HEADER_SIZE) }
  }
  const io = (handle: bigint, offset: number, size: number) => {
    const body = Buffer.alloc(40)
    body.writeBigUInt64LE(handle, 0)
    body.writeBigUInt64LE(BigInt(offset), 8)
    body.writeUInt32LE(size, 16)
    return body
  }
  return {
    state,
    server,
    ask,
    open: () => ask(Opcode.open, Buffer.alloc(8))!.body,
    read: (handle: bigint, offset = 0, size = 100) =>
      ask(Opcode.read, io(handle, offset, size))!.body.toString(),
    write: (handle: bigint, text: string) =>
      ask(Opcode.write, Buffer.concat([io(handle, 0, text.length), Buffer.from(text)]))!,
    isDue: (handle: bigint, pollHandle = 77n, notify = true) => {
      const body = Buffer.alloc(24)
      body.writeBigUInt64LE(handle, 0)
      body.writeBigUInt64LE(pollHandle, 8)
      body.writeUInt32LE(notify ? 1 : 0, 16)
      return (ask(Opcode.poll, body)!.body.readUInt32LE(0) & POLLPRI) !== 0
    },
  }
}

test('a file is read from any offset, past the page cache', () => {
  const { open, read } = setUp()
  expect(open().readUInt32LE(8) & FOPEN_DIRECT_IO).not.toBe(0)
  const handle = open().readBigUInt64LE(0)
  expect([read(handle), read(handle, 1), read(handle, 0, 1), read(handle, 2)]).toEqual(['0\n', '\n', '0', ''])
})

test('an event stays pending for each handle until that handle reads from the start', () => {
  const { open, read, isDue, state } = setUp()
  const first = open().readBigUInt64LE(0)
  const second = open().readBigUInt64LE(0)
  expect([isDue(first), isDue(second)]).toEqual([true, true])
  read(first)
  expect([isDue(first), isDue(second)]).toEqual([false, true])
  state.events += 1
  expect(isDue(first)).toBe(true)
  read(first, 1)
  expect(isDue(first)).toBe(true)
  read(first)
  expect([isDue(first), isDue(second)]).toEqual([false, true])
})

test('waiting handles are woken, closed handles and handles that only polled are not', () => {
  const { server, ask, open, isDue } = setUp()
  const waiting = open().readBigUInt64LE(0)
  const looking = open().readBigUInt64LE(0)
  isDue(waiting, 5n)
  isDue(looking, 6n, false)
  expect(server.wake(FILE).map((message) => message.readBigUInt64LE(OUT_HEADER_SIZE))).toEqual([5n])
  expect(server.wake(1)).toEqual([])
  const release = Buffer.alloc(24)
  release.writeBigUInt64LE(waiting, 0)
  ask(Opcode.release, release)
  expect(server.wake(FILE)).toEqual([])
})

test('a failure returns its error number, an unknown request ENOSYS, and FORGET no reply', () => {
  const { ask, write, open, state } = setUp()
  const handle = open().readBigUInt64LE(0)
  expect(write(handle, '1').body.readUInt32LE(0)).toBe(1)
  expect(state.text).toBe('1')
  expect(write(handle, 'bad').errno).toBe(Errno.EINVAL)
  expect(ask(Opcode.lookup, Buffer.from('other\0'), 1)?.errno).toBe(Errno.ENOENT)
  expect(ask(Opcode.open, Buffer.alloc(8), 50)?.errno).toBe(Errno.ENOENT)
  expect(ask(99, Buffer.alloc(0))?.errno).toBe(Errno.ENOSYS)
  expect(ask(Opcode.forget, Buffer.alloc(8))).toBeUndefined()
})
