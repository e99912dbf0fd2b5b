import { IN_HEADER_SIZE, Opcode, POLL_SCHEDULE_NOTIFY } from './opcodes.ts'

/**
 * A request of the kernel, decoded. File handles and poll handles are opaque 64-bit numbers; nodes are ours, small.
 * Requests that need no more than refusal are `other`.
 */
export type FuseRequest = { unique: bigint; node: number } & (
  | { kind: 'init'; major: number; minor: number; maxReadahead: number }
  | { kind: 'lookup'; name: string }
  /** Nothing is answered to these. */
  | { kind: 'forget' | 'interrupt' }
  | { kind: 'getattr' | 'setattr' | 'statfs' | 'flush' | 'destroy' }
  | { kind: 'open' | 'opendir'; flags: number }
  | { kind: 'read' | 'readdir'; handle: bigint; offset: number; size: number }
  | { kind: 'write'; handle: bigint; offset: number; data: Buffer }
  | { kind: 'release' | 'releasedir'; handle: bigint }
  | { kind: 'poll'; handle: bigint; pollHandle: bigint; notify: boolean }
  | { kind: 'other'; opcode: number }
)

/**
 * Decodes one request as read from `/dev/fuse`. Little-endian, as every machine that runs this is.
 * Throws a `RangeError` where the bytes are too few.
 */
export function decodeRequest(bytes: Buffer): FuseRequest {
  const length = bytes.readUInt32LE(0)
  if (length > bytes.length || length < IN_HEADER_SIZE) throw new RangeError('a truncated FUSE request')
  const opcode = bytes.readUInt32LE(4)
  const head = { unique: bytes.readBigUInt64LE(8), node: Number(bytes.readBigUInt64LE(16)) }
  const body = bytes.subarray(IN_HEADER_SIZE, length)

  switch (opcode) {
    case Opcode.INIT:
      return {
        ...head,
        kind: 'init',
        major: body.readUInt32LE(0),
        minor: body.readUInt32LE(4),
        maxReadahead: body.readUInt32LE(8),
      }
    case Opcode.LOOKUP:
      return { ...head, kind: 'lookup', name: body.subarray(0, body.indexOf(0)).toString() }
    case Opcode.FORGET:
    case Opcode.BATCH_FORGET:
      return { ...head, kind: 'forget' }
    case Opcode.INTERRUPT:
      return { ...head, kind: 'interrupt' }
    case Opcode.GETATTR:
      return { ...head, kind: 'getattr' }
    case Opcode.SETATTR:
      return { ...head, kind: 'setattr' }
    case Opcode.STATFS:
      return { ...head, kind: 'statfs' }
    case Opcode.FLUSH:
      return { ...head, kind: 'flush' }
    case Opcode.DESTROY:
      return { ...head, kind: 'destroy' }
    case Opcode.OPEN:
      return { ...head, kind: 'open', flags: body.readUInt32LE(0) }
    case Opcode.OPENDIR:
      return { ...head, kind: 'opendir', flags: body.readUInt32LE(0) }
    case Opcode.READ:
    case Opcode.READDIR:
      return {
        ...head,
        kind: opcode === Opcode.READ ? 'read' : 'readdir',
        handle: body.readBigUInt64LE(0),
        offset: Number(body.readBigUInt64LE(8)),
        size: body.readUInt32LE(16),
      }
    case Opcode.WRITE: {
      const size = body.readUInt32LE(16)
      if (body.length < 40 + size) throw new RangeError('a truncated FUSE write')
      return {
        ...head,
        kind: 'write',
        handle: body.readBigUInt64LE(0),
        offset: Number(body.readBigUInt64LE(8)),
        data: body.subarray(40, 40 + size),
      }
    }
    case Opcode.RELEASE:
      return { ...head, kind: 'release', handle: body.readBigUInt64LE(0) }
    case Opcode.RELEASEDIR:
      return { ...head, kind: 'releasedir', handle: body.readBigUInt64LE(0) }
    case Opcode.POLL:
      return {
        ...head,
        kind: 'poll',
        handle: body.readBigUInt64LE(0),
        pollHandle: body.readBigUInt64LE(8),
        notify: (body.readUInt32LE(16) & POLL_SCHEDULE_NOTIFY) !== 0,
      }
    default:
      return { ...head, kind: 'other', opcode }
  }
}
