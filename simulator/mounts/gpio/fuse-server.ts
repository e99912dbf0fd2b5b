import { decodeRequest, type FuseRequest, Errno } from './fuse-messages.ts'
import * as reply from './fuse-messages.ts'

/** A tree of small text files, whose root is node 1. Failures are error numbers, as the kernel's interface has them. */
export interface FileTree {
  attributes(node: number): reply.NodeAttributes | Errno
  lookup(folder: number, name: string): reply.NodeAttributes | Errno
  list(folder: number): reply.DirectoryEntry[]
  read(node: number): string | Errno
  write(node: number, text: string): Errno | undefined
  /** Counts what a poller of the node must notice: as it differs from what it last read, POLLPRI stands. 0: never. */
  events(node: number): number
}

export interface FuseServer {
  /** The answer to one request as read from the kernel; `undefined` where none is due. */
  answer(request: Buffer): Buffer | undefined
  /** The messages that wake those who wait for events of `node`. */
  wake(node: number): Buffer[]
}

interface Handle {
  node: number
  seen: number
  waiting: bigint | undefined
}

const POLLIN_OUT = 0x1 | 0x4 | 0x40 | 0x100
const POLLPRI_ERR = 0x2 | 0x8

/** Speaks the kernel's protocol for `tree`. No I/O: bytes in, bytes out. */
export function createFuseServer(tree: FileTree): FuseServer {
  const handles = new Map<bigint, Handle>()
  let lastHandle = 0n

  function open(request: FuseRequest): Buffer {
    const attributes = tree.attributes(request.node)
    if (typeof attributes === 'number') return reply.replyError(request.unique, attributes)
    lastHandle += 1n
    // As in the kernel, one that has read nothing yet has something to read.
    handles.set(lastHandle, { node: request.node, seen: 0, waiting: undefined })
    return reply.replyOpen(request.unique, lastHandle, attributes.kind)
  }

  function attributes(request: FuseRequest): Buffer {
    const found = tree.attributes(request.node)
    return typeof found === 'number'
      ? reply.replyError(request.unique, found)
      : reply.replyAttributes(request.unique, found)
  }

  function dispatch(request: FuseRequest): Buffer | undefined {
    const { unique, node } = request
    switch (request.kind) {
      case 'init':
        return reply.replyInit(unique, request.maxReadahead)
      case 'lookup': {
        const found = tree.lookup(node, request.name)
        return typeof found === 'number' ? reply.replyError(unique, found) : reply.replyEntry(unique, found)
      }
      case 'forget':
      case 'interrupt':
        return undefined
      case 'getattr':
      case 'setattr':
        return attributes(request)
      case 'statfs':
        return reply.replyStatfs(unique)
      case 'flush':
      case 'destroy':
        return reply.replyData(unique, Buffer.alloc(0))
      case 'open':
      case 'opendir':
        return open(request)
      case 'read': {
        const handle = handles.get(request.handle)
        if (handle && request.offset === 0) handle.seen = tree.events(node)
        const text = tree.read(node)
        if (typeof text === 'number') return reply.replyError(unique, text)
        return reply.replyData(
          unique,
          Buffer.from(text).subarray(request.offset, request.offset + request.size),
        )
      }
      case 'readdir':
        return reply.replyData(unique, reply.encodeDirectory(tree.list(node), request.offset, request.size))
      case 'write': {
        const errno = tree.write(node, request.data.toString())
        return errno === undefined
          ? reply.replyWritten(unique, request.data.length)
          : reply.replyError(unique, errno)
      }
      case 'release':
      case 'releasedir':
        handles.delete(request.handle)
        return reply.replyData(unique, Buffer.alloc(0))
      case 'poll': {
        const handle = handles.get(request.handle)
        if (handle && request.notify) handle.waiting = request.pollHandle
        const due = handle !== undefined && handle.seen !== tree.events(node)
        return reply.replyPoll(unique, due ? POLLIN_OUT | POLLPRI_ERR : POLLIN_OUT)
      }
      case 'other':
        return reply.replyError(unique, Errno.ENOSYS)
    }
  }

  return {
    answer: (bytes) => dispatch(decodeRequest(bytes)),
    wake: (node) =>
      [...handles.values()].flatMap((handle) =>
        handle.node === node && handle.waiting !== undefined ? [reply.notifyPoll(handle.waiting)] : [],
      ),
  }
}
