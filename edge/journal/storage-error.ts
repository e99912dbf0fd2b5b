import { accessSync, constants, statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import type { StorageFault, StorageReason } from '../../protocol/model/storage.ts'
import { Sqlite } from './sqlite-driver.ts'

/**
 * The storage of the hub's files cannot be used now. The call had no effect, and the caller may repeat it. A
 * storage failure must not end the service: a hub that cannot sell can still be reached and repaired.
 */
export class StorageError extends Error {
  override name = 'StorageError'
  readonly reason: StorageReason

  constructor(reason: StorageReason, detail: string, options?: ErrorOptions) {
    super(detail, options)
    this.reason = reason
  }

  /** The form for the heartbeat, the page and the log. */
  faultOf(path: string): StorageFault {
    return { reason: this.reason, setting: 'STORE', path, detail: this.message.slice(0, 300) }
  }
}

/** The journal cannot grow: its disk has no space or no inode left. */
export class StoreFullError extends StorageError {
  override name = 'StoreFullError'
  readonly code = 'SQLITE_FULL'
}

/** SQLite's result codes by prefix. The first match counts. */
const bySqlite: readonly (readonly [code: RegExp, reason: StorageReason])[] = [
  [/^SQLITE_(FULL|IOERR_SHMSIZE)/, 'full'],
  [/^SQLITE_READONLY/, 'read_only'],
  [/^SQLITE_(BUSY|LOCKED|PROTOCOL)/, 'locked'],
  [/^SQLITE_(CORRUPT|NOTADB)/, 'damaged'],
  [/^SQLITE_IOERR/, 'io_error'],
  [/^SQLITE_(CANTOPEN|PERM|AUTH)/, 'cannot_open'],
]

/** Error codes of the operating system. */
const bySystem: Readonly<Record<string, StorageReason>> = {
  ENOSPC: 'full',
  EDQUOT: 'full',
  EROFS: 'read_only',
  EIO: 'io_error',
  ENXIO: 'io_error',
  ENODEV: 'io_error',
  ENOTCONN: 'io_error',
  ESTALE: 'io_error',
  EREMOTEIO: 'io_error',
  ETIMEDOUT: 'io_error',
  EUCLEAN: 'damaged',
  EACCES: 'cannot_open',
  EPERM: 'cannot_open',
  ENOENT: 'cannot_open',
  EMFILE: 'cannot_open',
  ENFILE: 'cannot_open',
}

/** Reasons for which the file system may know a better cause. */
const VAGUE: readonly StorageReason[] = ['cannot_open', 'io_error', 'full']

/**
 * Why the storage of the file at `path` failed; undefined for any other error. SQLite reports "unable to open
 * database file" for a full inode table, and "disk I/O error" for a read-only file system. Therefore the
 * function also checks the file system.
 */
export function storageReasonOf(error: unknown, path?: string): StorageReason | undefined {
  if (error instanceof StorageError) return error.reason
  const reason = reasonByCode(error)
  if (reason === undefined || path === undefined || !VAGUE.includes(reason)) return reason
  return reasonByFileSystem(dirname(path), reason) ?? reason
}

/** Does work on the storage of the file at `path`. Converts a failure of the storage to a `StorageError`. */
export function ofStorage<T>(path: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    const reason = storageReasonOf(error, path)
    if (reason === undefined || error instanceof StorageError) throw error
    throw new StorageError(reason, (error as Error).message, { cause: error })
  }
}

function reasonByCode(error: unknown): StorageReason | undefined {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return undefined
  const { code } = error
  if (error instanceof Sqlite.SqliteError) return bySqlite.find(([pattern]) => pattern.test(code))?.[1]
  return 'syscall' in error ? bySystem[code] : undefined
}

function reasonByFileSystem(folder: string, vague: StorageReason): StorageReason | undefined {
  try {
    accessSync(folder, constants.W_OK)
    const { bavail, files, ffree } = statfsSync(folder)
    if (files > 0 && ffree === 0 && bavail > 0) return 'no_inodes'
    return vague === 'cannot_open' && bavail === 0 ? 'full' : undefined
  } catch (error) {
    // Root may write everywhere, but still gets `EROFS` on a read-only file system.
    return (error as NodeJS.ErrnoException).code === 'EROFS' ? 'read_only' : undefined
  }
}
