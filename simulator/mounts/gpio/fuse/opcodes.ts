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
