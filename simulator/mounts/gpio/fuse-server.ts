import * as fuse from './fuse-messages.ts'

/** A tree of small text files with root node 1. Failures are error numbers of the kernel's interface. */
export interface FileTree {
  attributes(node: number): fuse.NodeAttributes | fuse.Errno
  lookup(folder: number, name: string): fuse.NodeAttributes | fuse.Errno
  list(folder: number): fuse.DirectoryEntry[]
  read(node: number): string | fuse.Errno
  write(node: number, text: string): fuse.Errno | undefined
  /**
   * A counter of events that a poller must notice. POLLPRI is set while it differs from the value at the last read. 0:
   * never.
   */
  events(node: number): number
}

interface FuseServer {
  /** The answer to one request of the kernel; `undefined` if it has none. */
  answer(request: Buffer): Buffer | undefined
  /** The messages that wake the pollers of `node`. */
  wake(node: number): Buffer[]
}

interface Handle {
  node: number
  seen: number
  waiting: bigint | undefined
}

const POLLIN_OUT = 0x1 | 0x4 | 0x40 | 0x100
const POLLPRI_ERR = 0x2 | 0x8

/** Implements the kernel's protocol for `tree`. No I/O: bytes in, bytes out. */
export function createFuseServer(tree: FileTree): FuseServer {
  const handles = new Map<bigint, Handle>()
  let lastHandle = 0n

  function open(request: fuse.FuseRequest): Buffer {
    const attributes = tree.attributes(request.node)
    if (typeof attributes === 'number') return fuse.replyError(request.unique, attributes)
    lastHandle += 1n
    // As in the kernel, a new handle is readable at once.
    handles.set(lastHandle, { node: request.node, seen: 0, waiting: undefined })
    return fuse.replyOpen(request.unique, lastHandle, attributes.kind)
  }

  function attributes(request: fuse.FuseRequest): Buffer {
    const found = tree.attributes(request.node)
    return typeof found === 'number'
      ? fuse.replyError(request.unique, found)
      : fuse.replyAttributes(request.unique, found)
  }

  function dispatch(request: fuse.FuseRequest): Buffer | undefined {
    const { unique, node } = request
    switch (request.kind) {
      case 'init':
        return fuse.replyInit(unique, request.maxReadahead)
      case 'lookup': {
        const found = tree.lookup(node, request.name)
        return typeof found === 'number' ? fuse.replyError(unique, found) : fuse.replyEntry(unique, found)
      }
      case 'forget':
      case 'batch_forget':
      case 'interrupt':
        return undefined
      case 'getattr':
      case 'setattr':
        return attributes(request)
      case 'statfs':
        return fuse.replyStatfs(unique)
      case 'flush':
      case 'destroy':
        return fuse.replyData(unique, Buffer.alloc(0))
      case 'open':
      case 'opendir':
        return open(request)
      case 'read': {
        const handle = handles.get(request.handle)
        if (handle && request.offset === 0) handle.seen = tree.events(node)
        const text = tree.read(node)
        if (typeof text === 'number') return fuse.replyError(unique, text)
        return fuse.replyData(
          unique,
          Buffer.from(text).subarray(request.offset, request.offset + request.size),
        )
      }
      case 'readdir':
        return fuse.replyData(unique, fuse.encodeDirectory(tree.list(node), request.offset, request.size))
      case 'write': {
        const errno = tree.write(node, request.data.toString())
        return errno === undefined
          ? fuse.replyWritten(unique, request.data.length)
          : fuse.replyError(unique, errno)
      }
      case 'release':
      case 'releasedir':
        handles.delete(request.handle)
        return fuse.replyData(unique, Buffer.alloc(0))
      case 'poll': {
        const handle = handles.get(request.handle)
        if (handle && request.notify) handle.waiting = request.pollHandle
        const due = handle !== undefined && handle.seen !== tree.events(node)
        return fuse.replyPoll(unique, due ? POLLIN_OUT | POLLPRI_ERR : POLLIN_OUT)
      }
      case 'other':
        return fuse.replyError(unique, fuse.Errno.ENOSYS)
    }
  }

  return {
    answer: (bytes) => dispatch(fuse.decodeRequest(bytes)),
    wake: (node) =>
      [...handles.values()].flatMap((handle) =>
        handle.node === node && handle.waiting !== undefined ? [fuse.notifyPoll(handle.waiting)] : [],
      ),
  }
}
