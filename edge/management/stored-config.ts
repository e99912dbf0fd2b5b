import { existsSync } from 'node:fs'
import type Database from 'better-sqlite3'
import { HubConfig } from '../../protocol/mqtt/cloud-entries.ts'
import { migrations } from '../journal/migrations.ts'
import { Sqlite } from '../journal/sqlite-driver.ts'

/** The hub's configuration in its journal, for access from outside the hub's service. */
export interface StoredConfig {
  /** Null before the cloud's first configuration. */
  disabledBins(): number[] | null
  /**
   * Enables or disables one bin durably, and returns the bins that are then disabled. Throws a `StoreError`
   * if the change cannot be stored. Call it only while the hub's service is stopped: a running service has
   * its own copy in memory.
   */
  setEnabled(bin: number, enabled: boolean): number[]
}

/** Why the configuration could not be read or written, as text for an operator. */
export class StoreError extends Error {}

/** A service that was just killed leaves no lock; a starting service has its own lock for a moment. */
const BUSY_MS = 3000

export function storedConfig(path: string): StoredConfig {
  function withDatabase<T>(work: (db: Database.Database) => T): T {
    if (!existsSync(path)) throw new StoreError('the hub has no journal yet')
    let db: Database.Database | undefined
    try {
      db = new Sqlite(path, { fileMustExist: true, timeout: BUSY_MS })
      const version = Number(db.pragma('user_version', { simple: true }))
      if (version < 1 || version > migrations.length)
        throw new StoreError(
          `the hub's journal has version ${version}, this service knows ${migrations.length}`,
        )
      return work(db)
    } catch (error) {
      if (!(error instanceof Sqlite.SqliteError)) throw error
      throw new StoreError(`the hub's journal cannot be used: ${error.message} (${error.code})`)
    } finally {
      db?.close()
    }
  }

  return {
    disabledBins: () => withDatabase((db) => read(db)?.disabled_bins.toSorted(ascending) ?? null),
    setEnabled: (bin, enabled) =>
      withDatabase((db) => {
        // Same durability as the hub: a change reported as stored must survive a power cut.
        db.pragma('synchronous = FULL')
        return db
          .transaction(() => {
            const config = read(db)
            if (!config)
              throw new StoreError('the hub has no configuration yet: the cloud has never sent one')
            const others = config.disabled_bins.filter((number) => number !== bin)
            const disabled = (enabled ? others : [...others, bin]).toSorted(ascending)
            db.prepare("UPDATE meta SET value = ? WHERE key = 'config'").run(
              JSON.stringify({ ...config, disabled_bins: disabled }),
            )
            return disabled
          })
          .immediate()
      }),
  }
}

function read(db: Database.Database): HubConfig | undefined {
  const text = db.prepare<[], string>("SELECT value FROM meta WHERE key = 'config'").pluck().get()
  if (text === undefined) return undefined
  const config = HubConfig.safeParse(JSON.parse(text))
  if (!config.success)
    throw new StoreError('the stored configuration is not understood: it is of another version')
  return config.data
}

const ascending = (a: number, b: number): number => a - b
