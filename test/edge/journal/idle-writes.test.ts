import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { JournalOutbox } from '../../../edge/journal/outbox.ts'
import { openStore } from '../../../edge/journal/store.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { TestHub } from '../../world/hub.ts'

const MINUTE = 60_000
/** A page of 1 KB with its header in the log. */
const FRAME_BYTES = 1048

test('the telemetry of an hour, written every three minutes, changes two pages of the journal at each write', () => {
  const folder = mkdtempSync(join(tmpdir(), 'larder-idle-'))
  const path = join(folder, 'journal.sqlite')
  const store = openStore({ path, checkpoint: () => {}, log: silentLog })
  onTestFinished(() => {
    store.close()
    rmSync(folder, { recursive: true })
  })
  const outbox = new JournalOutbox(store, systemRuntime())
  const hour = (): number => {
    const before = statSync(`${path}-wal`).size
    for (let minute = 1; minute <= 60; minute += 1) {
      store.relieve()
      for (const fridge_number of [1, 2])
        outbox.append('telemetry', {
          kind: 'temperature',
          fridge_number,
          celsius: 4.25,
          min: 4,
          max: 5,
          at: minute * MINUTE,
        })
      if (minute % 3 !== 0) continue
      outbox.flush()
      outbox.forget('telemetry', outbox.position('telemetry').last)
    }
    return (statSync(`${path}-wal`).size - before) / FRAME_BYTES
  }
  // The pages are made in the first hour.
  hour()
  expect(hour()).toBe(40)
})

test('a hub writes the readings of three minutes together', () => {
  const bench = TestHub.ready()
  const written = new Set<number>()
  for (let minute = 0; minute < 12; minute += 1) {
    bench.run(MINUTE)
    written.add(bench.outbox.position('telemetry').last)
  }
  const steps = [...written].map((last, index, all) => last - (all[index - 1] ?? last)).slice(1)
  expect(steps.slice(-3)).toEqual([3, 3, 3])
})

test('a hub writes nothing when the cloud welcomes it again, if its clock is still right', () => {
  const bench = TestHub.ready()
  const welcome = (ms: number) =>
    bench.core.setCloudClock(bench.clock.now() + ms - bench.clock.monotonic(), { passing: false })
  welcome(0)
  const changes = () => bench.store.db.prepare<[], number>('SELECT total_changes()').pluck().get()
  const before = changes()
  for (const ms of [0, 400, -300]) welcome(ms)
  expect(changes()).toBe(before)
  welcome(5000)
  expect(changes()).toBeGreaterThan(before!)
})

test('a hub writes nothing when the welcome of a reconnection was under way for seconds, and keeps its time', () => {
  const bench = TestHub.ready()
  const offset = bench.clock.now() - bench.clock.monotonic()
  bench.core.setCloudClock(offset, { passing: false })
  const changes = () => bench.store.db.prepare<[], number>('SELECT total_changes()').pluck().get()
  const before = changes()
  for (let connection = 0; connection < 3; connection += 1) {
    bench.core.setCloudClock(offset - 3000, { passing: false, roundTripMs: 4000 })
    bench.core.setCloudClock(offset, { passing: true })
  }
  expect(changes()).toBe(before)
  expect(bench.core.cloudNow()).toBe(bench.clock.now())
  // No round trip explains this difference: the cloud's clock was put back.
  bench.core.setCloudClock(offset - 8000, { passing: false, roundTripMs: 4000 })
  expect(bench.core.cloudNow()).toBe(bench.clock.now() - 8000)
})
