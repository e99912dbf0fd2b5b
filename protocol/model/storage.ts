import { z } from 'zod'
import type { AlarmKindName } from './alarms.ts'

/** The reasons why a hub cannot use the storage of its journal. */
export const storageReasons = [
  'full',
  'no_inodes',
  'read_only',
  'io_error',
  'locked',
  'cannot_open',
  'damaged',
  'foreign_journal',
] as const
export type StorageReason = (typeof storageReasons)[number]

/** A hub's storage failure, as its heartbeat reports it. While it lasts, the hub moves, sells and reports nothing. */
export const StorageFault = z.object({
  /** A `StorageReason`; a newer hub may know others. */
  reason: z.string().max(32),
  /** The setting that names the file: `STORE`. */
  setting: z.string().max(64),
  path: z.string().max(500),
  /** The error of the database or of the operating system. */
  detail: z.string().max(300),
})
export type StorageFault = z.infer<typeof StorageFault>

interface ReasonText {
  /** The end of the sentence that begins with the setting and the path. */
  what: string
  remedy: string
  alarm: Extract<AlarmKindName, 'store_full' | 'storage_failed' | 'foreign_journal'>
}

const texts: Record<StorageReason, ReasonText> = {
  full: {
    what: 'has no free space on its disk',
    remedy: 'Delete files on the board’s card, or replace the card.',
    alarm: 'store_full',
  },
  no_inodes: {
    what: 'has no free inode on its file system',
    remedy: 'Delete small files on the board’s card, or replace the card.',
    alarm: 'store_full',
  },
  read_only: {
    what: 'is on a file system that is mounted read-only',
    remedy: 'Check the board’s card (fsck) and mount it for writing, or replace it.',
    alarm: 'storage_failed',
  },
  io_error: {
    what: 'cannot be read or written: the card reports errors',
    remedy: 'Replace the board’s card.',
    alarm: 'storage_failed',
  },
  locked: {
    what: 'is locked by another program',
    remedy: 'Close the program that has the journal open, such as a sqlite3 shell.',
    alarm: 'storage_failed',
  },
  cannot_open: {
    what: 'cannot be opened',
    remedy: 'Check that the folder exists, is mounted, and belongs to the service’s user.',
    alarm: 'storage_failed',
  },
  damaged: {
    what: 'is damaged and cannot be set aside',
    remedy: 'Check the board’s card (fsck), or replace it.',
    alarm: 'storage_failed',
  },
  foreign_journal: {
    what: 'belongs to another hub',
    remedy: 'Put this hub’s own journal back, or name an empty file. The foreign journal is unchanged.',
    alarm: 'foreign_journal',
  },
}

/** The texts of a reason. An unknown reason has the texts of `io_error`. */
export const storageText = (reason: string): ReasonText =>
  texts[storageReasons.find((known) => known === reason) ?? 'io_error']

/** `STORE: /var/lib/larder/hub.sqlite is locked by another program (database is locked)` */
export const storageSentence = ({ setting, path, reason, detail }: StorageFault): string =>
  `${setting}: ${path} ${storageText(reason).what} (${detail})`
