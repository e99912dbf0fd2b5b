import * as files from 'node:fs'
import { basename, dirname } from 'node:path'
import type Database from 'better-sqlite3'
import { makeFolder } from '../../protocol/model/make-folder.ts'
import type { Log } from '../../protocol/model/log.ts'
import { judgeJournal } from './journal-schema.ts'
import { migrations } from './migrations.ts'
import { Sqlite } from './sqlite-driver.ts'
import { storageReasonOf } from './storage-error.ts'

/**
 * Opens the database file. A file that fails its integrity check is moved aside with its log, and a new file
 * is created. A hub with a new store reconciles with its controllers and the cloud; a hub with a damaged
 * store is unpredictable. `alone`: exclusive lock for one process, so SQLite needs no extra files for
 * reading.
 */
export function openSoundFile(path: string, log: Log, { alone = false } = {}): Database.Database {
  const locking = alone ? 'EXCLUSIVE' : 'NORMAL'

  makeFolder(files, dirname(path))
  const damage = findDamage(path, locking)
  if (damage !== undefined) {
    const aside = nextOf(`${path}.damaged`)
    for (const suffix of ['', '-wal', '-shm'])
      if (files.existsSync(path + suffix)) files.renameSync(path + suffix, aside + suffix)
    log.error({ path, aside, damage }, 'the journal is damaged: it is kept aside and a new one begun')
    dropOldest(`${path}.damaged`)
  }
  const db = new Sqlite(path)
  db.pragma(`locking_mode = ${locking}`)
  return db
}

/**
 * Throws if the file is the journal of another hub or version. The connection is read-only, because a writing
 * connection moves SQLite's log into the file when it closes. If the file cannot be read this way, the check
 * follows when it is open.
 */
export function refuseForeignFile(path: string, hubId: number | undefined): void {
  if (!files.existsSync(path) || files.statSync(path).size === 0) return
  let db: Database.Database | undefined
  try {
    db = new Sqlite(path, { readonly: true })
    judgeJournal(db, migrations, hubId)
  } catch (error) {
    const reason = storageReasonOf(error)
    if (reason === undefined || reason === 'foreign_journal') throw error
  } finally {
    db?.close()
  }
}

function findDamage(path: string, locking: string): string | undefined {
  if (!files.existsSync(path)) return undefined
  let db: Database.Database | undefined
  try {
    db = new Sqlite(path)
    db.pragma(`locking_mode = ${locking}`)
    const verdict: unknown = db.pragma('integrity_check(1)', { simple: true })
    return verdict === 'ok' ? undefined : String(verdict)
  } catch (error) {
    if (!(error instanceof Sqlite.SqliteError)) throw error
    // Other errors (permissions, memory, lock) are for the operator: a new file would not help.
    if (error.code !== 'SQLITE_NOTADB' && !error.code.startsWith('SQLITE_CORRUPT')) throw error
    return error.message
  } finally {
    db?.close()
  }
}

/** Number of damaged journals that are kept for an analysis of the cause. */
const KEPT_DAMAGED = 3

function dropOldest(stem: string): void {
  for (const number of numbersOf(stem).slice(0, -KEPT_DAMAGED))
    for (const suffix of ['', '-wal', '-shm']) files.rmSync(`${stem}-${number}${suffix}`, { force: true })
}

const nextOf = (stem: string): string => `${stem}-${(numbersOf(stem).at(-1) ?? 0) + 1}`

/** The numbers of the files `<stem>-N`, the smallest first. */
const numbersOf = (stem: string): number[] =>
  files
    .readdirSync(dirname(stem))
    .flatMap((name) => {
      const [, number] = name.startsWith(`${basename(stem)}-`) ? (/-(\d+)$/.exec(name) ?? []) : []
      return number === undefined ? [] : [Number(number)]
    })
    .toSorted((left, right) => left - right)
