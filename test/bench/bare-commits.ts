import { performance } from 'node:perf_hooks'
import { writtenBytes } from './process-figures.ts'
import { Sqlite } from '../../edge/journal/sqlite-driver.ts'

/**
 * Makes `count` durable commits of one row of 300 bytes; returns their times in milliseconds and the bytes
 * written to the disk.
 */
export function durableCommits(path: string, count: number): { times: number[]; bytes: number } {
  const db = new Sqlite(path)
  db.pragma('journal_mode = WAL')
  db.pragma('synchronous = FULL')
  db.exec('CREATE TABLE IF NOT EXISTS entries (id INTEGER PRIMARY KEY, body TEXT)')
  const insert = db.prepare('INSERT INTO entries (body) VALUES (?)')
  const body = 'x'.repeat(300)
  const before = writtenBytes('self')
  const times = Array.from({ length: count }, () => {
    const begun = performance.now()
    insert.run(body)
    return performance.now() - begun
  })
  const bytes = writtenBytes('self') - before
  db.close()
  return { times, bytes }
}
