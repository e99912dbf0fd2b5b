import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { carryOver } from '../../../edge/journal/carry-over.ts'
import { Sqlite } from '../../../edge/journal/sqlite-driver.ts'
import { TestHub } from '../../world/hub.ts'

const MINUTE = 60_000

/** Starts the hub on a new journal with the times of the present one, as after a move to another cell. */
function moveOn(bench: TestHub, { after = 0 } = {}): void {
  const folder = mkdtempSync(join(tmpdir(), 'larder-carry-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const [former, path] = [join(folder, 'former'), join(folder, 'journal')]
  bench.kill()
  writeFileSync(former, bench.copy())
  for (const _ of [1, 2]) carryOver(former, { path, hubId: 100_000_001 })
  // A database in memory has no log.
  const file = new Sqlite(path)
  file.pragma('journal_mode = DELETE')
  file.close()
  bench.run(after)
  bench.restartOn(readFileSync(path))
}

const fridges = (bench: TestHub) => bench.core.health().fridges.map(({ shutoff }) => shutoff)

test('a fridge that was shut off stays shut off in the new journal, although it is cold again', () => {
  const bench = TestHub.ready()
  const fault = bench.fault('warm_fridge')
  expect(bench.runUntil(() => fridges(bench).includes(true), 120 * MINUTE)).toBe(true)
  bench.room.faults.clear(fault)
  const before = fridges(bench)
  bench.run(180 * MINUTE)
  moveOn(bench)
  bench.apply(bench.snapshot())
  bench.run(60 * MINUTE)
  expect(fridges(bench)).toEqual(before)
})

test('the time without a proof of cold continues in the new journal: the first time of the cloud moves no time of the former one', () => {
  const bench = TestHub.ready()
  bench.core.setCloudClock(1_700_000_000_000, { passing: false })
  bench.run(20 * MINUTE)
  const readAt = (): unknown => bench.journal.prepare('SELECT max(read_at) FROM fridges').pluck().get()
  bench.run(1)
  const before = readAt()
  moveOn(bench, { after: 5 * MINUTE })
  expect(readAt()).toBe(before)
  // The board's clock stood still for three hours: the estimate of the time was wrong. The process has just started.
  bench.core.setCloudClock(bench.core.cloudNow() + 180 * MINUTE, { passing: false })
  expect(readAt()).toBe(before)
})
