import type Database from 'better-sqlite3'
import { defaultSyncSettings } from '../../../protocol/settings/hub-limits.ts'
import type { SyncSettings } from '../../../protocol/settings/hub-limits.ts'
import { virtualRuntime } from '../../world/clock.ts'
import { startHub } from './hub-life.ts'
import { Line } from './line.ts'
import { ScriptedCloud } from './scripted-cloud.ts'
import { Sqlite } from '../../../edge/journal/sqlite-driver.ts'

/** A scripted cloud, a line to it, and a database for hubs to live on. */
export function setUp(settings: Partial<SyncSettings> = {}) {
  const runtime = virtualRuntime()
  const { clock } = runtime
  const line = new Line(clock)
  const cloud = new ScriptedCloud(line, clock)
  const db = new Sqlite(':memory:')
  const startOn = (db: Database.Database, isOnTrial?: () => boolean) =>
    startHub(db, line, runtime, { ...defaultSyncSettings, ...settings }, isOnTrial)
  const start = () => startOn(db)
  const details = (): unknown[] =>
    cloud.streams.ledger.applied.map((body) => {
      const entry = body as { kind: string; detail?: string }
      return entry.detail ?? entry.kind
    })
  return { clock, line, cloud, db, start, startOn, details }
}
