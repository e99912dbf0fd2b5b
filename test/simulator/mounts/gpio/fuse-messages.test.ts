import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  IN_HEADER_SIZE,
  Opcode,
  encodeDirectory,
  notifyPoll,
  replyAttributes,
  replyEntry,
  replyError,
  decodeRequest,
} from '../../../../simulator/mounts/gpio/fuse-messages.ts'

/** Encodes a request as the kernel does, field by field. */
function request(opcode: number, unique: bigint, node: number, body: Buffer): Buffer {
  const head = Buffer.alloc(IN_HEADER_SIZE)
  head.writeUInt32LE(IN_HEADER_SIZE + body.length, 0)
  head.writeUInt32LE(opcode, 4)
  head.writeBigUInt64LE(unique, 8)
  head.writeBigUInt64LE(BigInt(node), 16)
  return Buffer.concat([head, body])
}

function words(...fields: (readonly [32 | 64, number | bigint])[]): Buffer {
  const body = Buffer.alloc(fields.reduce((size, [bits]) => size + bits / 8, 0))
  let at = 0
  for (const [bits, value] of fields) {
    if (bits === 32) body.writeUInt32LE(Number(value), at)
    else body.writeBigUInt64LE(BigInt(value), at)
    at += bits / 8
  }
  return body
}

const u32 = fc.nat(0xffffffff)
const u64 = fc.bigInt(0n, 2n ** 64n - 1n)
const node = fc.nat(2 ** 31)
const offset = fc.nat(2 ** 31)
const name = fc.string({ minLength: 1, maxLength: 200 }).filter((text) => !text.includes('\0'))

test('a decoded request has the kernel’s fields', () => {
  fc.assert(
    fc.property(u64, node, u64, offset, u32, u64, (unique, node, handle, offset, size, pollHandle) => {
      const head = { unique, node }
      const io = words([64, handle], [64, offset], [32, size], [32, 0], [64, 0], [32, 0], [32, 0])
      expect(decodeRequest(request(Opcode.read, unique, node, io))).toEqual({
        ...head,
        kind: 'read',
        handle,
        offset,
        size,
      })
      const poll = words([64, handle], [64, pollHandle], [32, size], [32, 0])
      expect(decodeRequest(request(Opcode.poll, unique, node, poll))).toEqual({
        ...head,
        kind: 'poll',
        handle,
        pollHandle,
        notify: size % 2 === 1,
      })
      expect(decodeRequest(request(Opcode.release, unique, node, words([64, handle], [64, 0])))).toEqual({
        ...head,
        kind: 'release',
        handle,
      })
    }),
  )
})

test('names and written bytes of a request arrive whole', () => {
  fc.assert(
    fc.property(u64, node, name, fc.uint8Array({ maxLength: 300 }), (unique, node, name, bytes) => {
      const lookup = decodeRequest(request(Opcode.lookup, unique, node, Buffer.from(`${name}\0`)))
      expect(lookup).toMatchObject({ kind: 'lookup', name })
      const io = words([64, 7], [64, 0], [32, bytes.length], [32, 0], [64, 0], [32, 0], [32, 0])
      const write = decodeRequest(
        request(Opcode.write, unique, node, Buffer.concat([io, Buffer.from(bytes)])),
      )
      expect(write).toMatchObject({ kind: 'write', handle: 7n })
      expect(write.kind === 'write' && Buffer.compare(write.data, bytes)).toBe(0)
    }),
  )
})

test('truncated bytes are refused, and never read past their end', () => {
  fc.assert(
    fc.property(fc.constantFrom(...Object.values(Opcode)), fc.nat(100), (opcode, cut) => {
      const whole = request(opcode, 1n, 1, Buffer.alloc(64))
      const short = whole.subarray(0, Math.min(whole.length - 1, cut))
      expect(() => decodeRequest(short)).toThrow(RangeError)
    }),
  )
})

test('any other request is named by its number', () => {
  expect(decodeRequest(request(99, 5n, 1, Buffer.alloc(0)))).toEqual({
    unique: 5n,
    node: 1,
    kind: 'other',
    opcode: 99,
  })
})

test('replies contain their length, the request number, and errors as negative numbers', () => {
  fc.assert(
    fc.property(u64, fc.nat(133), fc.nat(2 ** 31), (unique, errno, node) => {
      const error = replyError(unique, errno)
      expect([error.length, error.readUInt32LE(0), error.readInt32LE(4)]).toEqual([16, 16, 0 - errno])
      const file = { node, kind: 'file', permissions: 0o644 } as const
      const entry = replyEntry(unique, file)
      expect([entry.length, entry.readUInt32LE(0), entry.readBigUInt64LE(8)]).toEqual([144, 144, unique])
      expect([entry.readBigUInt64LE(16), entry.readBigUInt64LE(56)]).toEqual([BigInt(node), BigInt(node)])
      expect(entry.readUInt32LE(16 + 40 + 60)).toBe(0o100644)
      const attributes = replyAttributes(unique, { node, kind: 'folder', permissions: 0o755 })
      expect([attributes.length, attributes.readUInt32LE(16 + 16 + 60)]).toEqual([120, 0o40755])
    }),
  )
})

test('a wake-up notice has no request number, but the code of the notice and the handle', () => {
  fc.assert(
    fc.property(u64, (handle) => {
      const notice = notifyPoll(handle)
      expect([notice.readInt32LE(4), notice.readBigUInt64LE(8), notice.readBigUInt64LE(16)]).toEqual([
        1,
        0n,
        handle,
      ])
    }),
  )
})

test('a folder that is read in parts of any size lists every entry once', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(name, { maxLength: 30 }),
      fc.integer({ min: 900, max: 3000 }),
      (names, size) => {
        const entries = names.map((name, index) => ({ node: index + 1, kind: 'file' as const, name }))
        const seen: string[] = []
        for (;;) {
          const bytes = encodeDirectory(entries, seen.length, size)
          expect(bytes.length).toBeLessThanOrEqual(size)
          if (bytes.length === 0) break
          for (let at = 0; at < bytes.length;) {
            const length = bytes.readUInt32LE(at + 16)
            seen.push(bytes.subarray(at + 24, at + 24 + length).toString())
            expect(bytes.readBigUInt64LE(at + 8)).toBe(BigInt(seen.length))
            at += Math.ceil((24 + length) / 8) * 8
          }
        }
        expect(seen).toEqual(names)
      },
    ),
  )
})
