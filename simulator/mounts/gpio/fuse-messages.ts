/** The kernel's FUSE interface, version 7.31, as far as a tree of small text files needs it. See fuse(4). */
export const FUSE_MAJOR = 7
export const FUSE_MINOR = 31

export const Opcode = {
  LOOKUP: 1,
  FORGET: 2,
  GETATTR: 3,
  SETATTR: 4,
  OPEN: 14,
  READ: 15,
  WRITE: 16,
  STATFS: 17,
  RELEASE: 18,
  FLUSH: 25,
  INIT: 26,
  OPENDIR: 27,
  READDIR: 28,
  RELEASEDIR: 29,
  INTERRUPT: 36,
  DESTROY: 38,
  POLL: 40,
  BATCH_FORGET: 42,
} as const

/** An unsolicited message to the kernel: `unique` 0, and this where a reply has its error. */
export const NOTIFY_POLL = 1

/** Reads and writes come to the server, past the page cache: a level is never stale. */
export const FOPEN_DIRECT_IO = 1
/** A POLL that wants to be told when its answer changes. */
export const POLL_SCHEDULE_NOTIFY = 1

/** Bytes before a request's arguments, and before a reply's. */
export const IN_HEADER_SIZE = 40
export const OUT_HEADER_SIZE = 16

export const Errno = {
  EPERM: 1,
  ENOENT: 2,
  EIO: 5,
  EACCES: 13,
  EBUSY: 16,
  EINVAL: 22,
  ENOSYS: 38,
} as const
export type Errno = (typeof Errno)[keyof typeof Errno]

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

/** What a node is: a folder, or a file of at most a page that is as large as sysfs says. */
export interface NodeAttributes {
  node: number
  kind: 'folder' | 'file'
  /** Permission bits, for example 0o644. */
  permissions: number
}

const FOLDER_MODE = 0o040000
const FILE_MODE = 0o100000
/** As sysfs: every attribute file says one page, whatever it holds. */
const FILE_SIZE = 4096
/** The largest write that the kernel may send at once. Every file here takes a word. */
const MAX_WRITE = 4096

/** A reply's header and its arguments, as one write to `/dev/fuse`. */
function frame(unique: bigint, error: number, body: Buffer): Buffer {
  const head = Buffer.alloc(OUT_HEADER_SIZE)
  head.writeUInt32LE(OUT_HEADER_SIZE + body.length, 0)
  head.writeInt32LE(error, 4)
  head.writeBigUInt64LE(unique, 8)
  return Buffer.concat([head, body])
}

export const replyError = (unique: bigint, errno: number): Buffer => frame(unique, -errno, Buffer.alloc(0))

export const replyData = (unique: bigint, data: Buffer): Buffer => frame(unique, 0, data)

export function replyInit(unique: bigint, maxReadahead: number): Buffer {
  const body = Buffer.alloc(64)
  body.writeUInt32LE(FUSE_MAJOR, 0)
  body.writeUInt32LE(FUSE_MINOR, 4)
  body.writeUInt32LE(maxReadahead, 8)
  // flags: none. Above all not ATOMIC_O_TRUNC: truncation comes as a SETATTR of its own.
  body.writeUInt16LE(16, 16) // max_background
  body.writeUInt16LE(12, 18) // congestion_threshold
  body.writeUInt32LE(MAX_WRITE, 20)
  body.writeUInt32LE(1, 24) // time_gran
  return frame(unique, 0, body)
}

function writeAttributes(body: Buffer, at: number, { node, kind, permissions }: NodeAttributes): void {
  body.writeBigUInt64LE(BigInt(node), at)
  body.writeBigUInt64LE(BigInt(kind === 'file' ? FILE_SIZE : 0), at + 8)
  // blocks, times and their nanoseconds stay 0; so do uid, gid and rdev.
  body.writeUInt32LE((kind === 'file' ? FILE_MODE : FOLDER_MODE) | permissions, at + 60)
  body.writeUInt32LE(kind === 'file' ? 1 : 2, at + 64) // nlink
  body.writeUInt32LE(FILE_SIZE, at + 80) // blksize
}

/** The answer to LOOKUP. Neither the entry nor its attributes may be cached: pins come and go. */
export function replyEntry(unique: bigint, attributes: NodeAttributes): Buffer {
  const body = Buffer.alloc(128)
  body.writeBigUInt64LE(BigInt(attributes.node), 0)
  writeAttributes(body, 40, attributes)
  return frame(unique, 0, body)
}

export function replyAttributes(unique: bigint, attributes: NodeAttributes): Buffer {
  const body = Buffer.alloc(104)
  writeAttributes(body, 16, attributes)
  return frame(unique, 0, body)
}

export function replyOpen(unique: bigint, handle: bigint, kind: NodeAttributes['kind']): Buffer {
  const body = Buffer.alloc(16)
  body.writeBigUInt64LE(handle, 0)
  body.writeUInt32LE(kind === 'file' ? FOPEN_DIRECT_IO : 0, 8)
  return frame(unique, 0, body)
}

export function replyWritten(unique: bigint, size: number): Buffer {
  const body = Buffer.alloc(8)
  body.writeUInt32LE(size, 0)
  return frame(unique, 0, body)
}

export function replyStatfs(unique: bigint): Buffer {
  const body = Buffer.alloc(80)
  body.writeUInt32LE(FILE_SIZE, 40) // bsize
  body.writeUInt32LE(255, 44) // namelen
  return frame(unique, 0, body)
}

export function replyPoll(unique: bigint, events: number): Buffer {
  const body = Buffer.alloc(8)
  body.writeUInt32LE(events, 0)
  return frame(unique, 0, body)
}

/** Tells the kernel to poll again whoever waits with this handle. */
export function notifyPoll(pollHandle: bigint): Buffer {
  const body = Buffer.alloc(8)
  body.writeBigUInt64LE(pollHandle, 0)
  return frame(0n, NOTIFY_POLL, body)
}

export interface DirectoryEntry {
  node: number
  kind: NodeAttributes['kind']
  name: string
}

/** The entries from `offset` (an index) on that fit into `size` bytes. An empty answer ends the listing. */
export function encodeDirectory(entries: readonly DirectoryEntry[], offset: number, size: number): Buffer {
  const parts: Buffer[] = []
  let room = size
  for (let index = offset; index < entries.length; index++) {
    const { node, kind, name } = entries[index]!
    const text = Buffer.from(name)
    const entry = Buffer.alloc(Math.ceil((24 + text.length) / 8) * 8)
    if (entry.length > room) break
    room -= entry.length
    entry.writeBigUInt64LE(BigInt(node), 0)
    entry.writeBigUInt64LE(BigInt(index + 1), 8)
    entry.writeUInt32LE(text.length, 16)
    entry.writeUInt32LE(kind === 'folder' ? 4 : 8, 20) // DT_DIR, DT_REG
    text.copy(entry, 24)
    parts.push(entry)
  }
  return Buffer.concat(parts)
}
