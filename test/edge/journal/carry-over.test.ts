import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { carryOver } from '../../../edge/journal/carry-over.ts'
import { createLayout } from '../../../edge/core/layout.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { Sqlite } from '../../../edge/journal/sqlite-driver.ts'
import { TestHub } from '../../world/hub.ts'

const MINUTE = 60_000

/** Starts the hub on a new journal with the times of the present one, as after a move to another cell; `damaged`: without them. */
function moveOn(bench: TestHub, { after = 0, damaged = false } = {}): void {
  const folder = mkdtempSync(join(tmpdir(), 'larder-carry-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const [former, path] = [join(folder, 'former'), join(folder, 'journal')]
  bench.kill()
  writeFileSync(former, damaged ? 'damaged' : bench.copy())
  const fridges = createLayout(bench.hardware).fridges.map(({ number }) => number)
  for (const _ of [1, 2]) carryOver(former, { path, hubId: 100_000_001, fridges, log: silentLog })
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

test('after the loss of the former journal a cold fridge sells when readings have proven that it is cold, and a warm one when a person has checked it', () => {
  for (const isWarm of [false, true]) {
    const bench = TestHub.ready()
    bench.run(5 * MINUTE)
    if (isWarm) bench.fault('warm_fridge')
    moveOn(bench, { damaged: true, after: 15 * MINUTE })
    bench.apply(bench.snapshot())
    const alarms = bench.entries('alarm').filter(({ code }) => code === 'journal_lost')
    expect(alarms.map(({ raised, detail }) => [raised, detail])).toEqual(
      [true, false].map((raised) => [raised, 'the former journal is damaged']),
    )
    const last = (): unknown =>
      bench.entries('state').findLast(({ state }) => state.of === 'cabinet' && state.cabinet === 1)?.state
    bench.run(20_000)
    expect(last()).toMatchObject({ withheld: isWarm ? 'shutoff' : 'silent' })
    bench.run(20 * MINUTE)
    expect(last()).toMatchObject({ withheld: isWarm ? 'shutoff' : null })
    expect(fridges(bench)[0]).toBe(isWarm)
  }
})
