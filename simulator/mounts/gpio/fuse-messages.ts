/** The part of the kernel's FUSE interface, version 7.31, that a tree of small text files needs. See fuse(4). */
const FUSE_MAJOR = 7
const FUSE_MINOR = 31

/** The supported requests, by the kernel's numbers. */
export const Opcode = {
  lookup: 1,
  forget: 2,
  getattr: 3,
  setattr: 4,
  open: 14,
  read: 15,
  write: 16,
  statfs: 17,
  release: 18,
  flush: 25,
  init: 26,
  opendir: 27,
  readdir: 28,
  releasedir: 29,
  interrupt: 36,
  destroy: 38,
  poll: 40,
  batch_forget: 42,
} as const
type Kind = keyof typeof Opcode
const kindOf = new Map<number, Kind>(Object.entries(Opcode).map(([kind, opcode]) => [opcode, kind as Kind]))

/** An unsolicited message to the kernel: `unique` is 0, and this value is in the error field. */
const NOTIFY_POLL = 1
/** Reads and writes bypass the page cache, so that a level is never stale. */
export const FOPEN_DIRECT_IO = 1
/** A POLL that requests a notification when its answer changes. */
const POLL_SCHEDULE_NOTIFY = 1

/** Sizes of the headers of requests and replies in bytes. */
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
 * A decoded request of the kernel. File handles and poll handles are opaque 64-bit numbers; node numbers are chosen
 * here and are small. Requests that are only refused are `other`.
 */
export type FuseRequest = { unique: bigint; node: number } & (
  | { kind: 'init'; maxReadahead: number }
  | { kind: 'lookup'; name: string }
  | { kind: 'read' | 'readdir'; handle: bigint; offset: number; size: number }
  | { kind: 'write'; handle: bigint; offset: number; data: Buffer }
  | { kind: 'release' | 'releasedir'; handle: bigint }
  | { kind: 'poll'; handle: bigint; pollHandle: bigint; notify: boolean }
  /** These have no answer. */
  | { kind: 'forget' | 'batch_forget' | 'interrupt' }
  | { kind: 'getattr' | 'setattr' | 'open' | 'opendir' | 'statfs' | 'flush' | 'destroy' }
  | { kind: 'other'; opcode: number }
)

/**
 * Decodes one request from `/dev/fuse`. Little-endian, like every machine that runs it. Throws a `RangeError` if bytes
 * are missing.
 */
export function decodeRequest(bytes: Buffer): FuseRequest {
  const length = bytes.readUInt32LE(0)
  if (length > bytes.length || length < IN_HEADER_SIZE) throw new RangeError('a truncated FUSE request')
  const opcode = bytes.readUInt32LE(4)
  const head = { unique: bytes.readBigUInt64LE(8), node: Number(bytes.readBigUInt64LE(16)) }
  const body = bytes.subarray(IN_HEADER_SIZE, length)
  const handle = () => body.readBigUInt64LE(0)
  const offset = () => Number(body.readBigUInt64LE(8))

  const kind = kindOf.get(opcode)
  switch (kind) {
    case undefined:
      return { ...head, kind: 'other', opcode }
    case 'init':
      return { ...head, kind, maxReadahead: body.readUInt32LE(8) }
    case 'lookup':
      return { ...head, kind, name: body.subarray(0, body.indexOf(0)).toString() }
    case 'read':
    case 'readdir':
      return { ...head, kind, handle: handle(), offset: offset(), size: body.readUInt32LE(16) }
    case 'write': {
      const size = body.readUInt32LE(16)
      if (body.length < 40 + size) throw new RangeError('a truncated FUSE write')
      return { ...head, kind, handle: handle(), offset: offset(), data: body.subarray(40, 40 + size) }
    }
    case 'release':
    case 'releasedir':
      return { ...head, kind, handle: handle() }
    case 'poll': {
      const notify = (body.readUInt32LE(16) & POLL_SCHEDULE_NOTIFY) !== 0
      return { ...head, kind, handle: handle(), pollHandle: body.readBigUInt64LE(8), notify }
    }
    case 'forget':
    case 'batch_forget':
    case 'interrupt':
    case 'getattr':
    case 'setattr':
    case 'open':
    case 'opendir':
    case 'statfs':
    case 'flush':
    case 'destroy':
      return { ...head, kind }
  }
}

/** The attributes of a node: a folder, or a file with the size that sysfs reports. */
export interface NodeAttributes {
  node: number
  kind: 'folder' | 'file'
  /** Permission bits, for example 0o644. */
  permissions: number
}

const FOLDER_MODE = 0o040000
const FILE_MODE = 0o100000
/** Like in sysfs, every attribute file reports the size of a page. */
const FILE_SIZE = 4096
/** The largest write that the kernel may send at once. A word fits into every file here. */
const MAX_WRITE = 4096

/** A reply's header and its arguments, as one write to `/dev/fuse`. */
function frame(unique: bigint, error: number, body: Buffer): Buffer {
  const head = Buffer.alloc(OUT_HEADER_SIZE)
  head.writeUInt32LE(OUT_HEADER_SIZE + body.length, 0)
  head.writeInt32LE(error, 4)
  head.writeBigUInt64LE(unique, 8)
  return Buffer.concat([head, body])
}

/** Values by their offsets: a number has 32 bits, a bigint 64. */
type Words = Readonly<Record<number, number | bigint>>

/** Arguments of `size` bytes; all other bytes are 0. */
function words(size: number, at: Words): Buffer {
  const body = Buffer.alloc(size)
  for (const [offset, value] of Object.entries(at))
    if (typeof value === 'bigint') body.writeBigUInt64LE(value, Number(offset))
    else body.writeUInt32LE(value, Number(offset))
  return body
}

export const replyError = (unique: bigint, errno: number): Buffer => frame(unique, -errno, Buffer.alloc(0))

export const replyData = (unique: bigint, data: Buffer): Buffer => frame(unique, 0, data)

/** No flags are set. Without ATOMIC_O_TRUNC, truncation arrives as a separate SETATTR. */
export function replyInit(unique: bigint, maxReadahead: number): Buffer {
  const [maxBackground, congestionThreshold, timeGranularity] = [16, 12, 1]
  const background = maxBackground | (congestionThreshold << 16)
  const at = { 0: FUSE_MAJOR, 4: FUSE_MINOR, 8: maxReadahead, 16: background, 20: MAX_WRITE }
  return frame(unique, 0, words(64, { ...at, 24: timeGranularity }))
}

/** Blocks, times and their nanoseconds stay 0; so do uid, gid and rdev. */
function attributeWords(at: number, { node, kind, permissions }: NodeAttributes): Words {
  const isFile = kind === 'file'
  return {
    [at]: BigInt(node),
    [at + 8]: BigInt(isFile ? FILE_SIZE : 0),
    [at + 60]: (isFile ? FILE_MODE : FOLDER_MODE) | permissions,
    [at + 64]: isFile ? 1 : 2, // nlink
    [at + 80]: FILE_SIZE, // blksize
  }
}

/** The answer to LOOKUP. The kernel must not cache it, because pins appear and disappear. */
export const replyEntry = (unique: bigint, attributes: NodeAttributes): Buffer =>
  frame(unique, 0, words(128, { 0: BigInt(attributes.node), ...attributeWords(40, attributes) }))

export const replyAttributes = (unique: bigint, attributes: NodeAttributes): Buffer =>
  frame(unique, 0, words(104, attributeWords(16, attributes)))

export const replyOpen = (unique: bigint, handle: bigint, kind: NodeAttributes['kind']): Buffer =>
  frame(unique, 0, words(16, { 0: handle, 8: kind === 'file' ? FOPEN_DIRECT_IO : 0 }))

export const replyWritten = (unique: bigint, size: number): Buffer => frame(unique, 0, words(8, { 0: size }))

/** The block size and the longest name. */
export const replyStatfs = (unique: bigint): Buffer => frame(unique, 0, words(80, { 40: FILE_SIZE, 44: 255 }))

export const replyPoll = (unique: bigint, events: number): Buffer => frame(unique, 0, words(8, { 0: events }))

/** The kernel then polls again for the process that waits with this handle. */
export const notifyPoll = (pollHandle: bigint): Buffer => frame(0n, NOTIFY_POLL, words(8, { 0: pollHandle }))

export interface DirectoryEntry {
  node: number
  kind: NodeAttributes['kind']
  name: string
}

/** The entries from index `offset` on that fit into `size` bytes. An empty answer ends the listing. */
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
