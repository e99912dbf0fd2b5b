import * as files from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { lastErrorFile } from '../../../edge/last-error.ts'
import { TestHub } from '../../world/hub.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE

const alarmsOf = (bench: TestHub, code: string) => bench.core.alarms().filter((alarm) => alarm.code === code)

test('a hub that is killed three times in 10 minutes raises hub_restarting, which ends after 10 quiet minutes', () => {
  const bench = TestHub.ready()
  for (let crash = 1; crash <= 3; crash += 1) {
    expect(alarmsOf(bench, 'hub_restarting')).toEqual([])
    bench.restart()
    bench.run(2 * MINUTE)
  }
  expect(alarmsOf(bench, 'hub_restarting')).toMatchObject([
    { subject: 'hub', detail: expect.stringMatching(/^3 times in 10 min .*no last error$/) as string },
  ])
  bench.run(11 * MINUTE)
  expect(alarmsOf(bench, 'hub_restarting')).toEqual([])
})

test('the alarm hub_restarting has the last error of the service', () => {
  const bench = TestHub.ready()
  bench.lastError = 'ENOTCONN: socket is not connected, read'
  bench.restart()
  bench.lastError = undefined
  for (let crash = 0; crash < 2; crash += 1) bench.restart()
  expect(alarmsOf(bench, 'hub_restarting')[0]!.detail).toContain(
    'last error: ENOTCONN: socket is not connected',
  )
})

test('graceful restarts and rare crashes raise no alarm', () => {
  const bench = TestHub.ready()
  for (let start = 0; start < 6; start += 1) {
    bench.core.stop()
    bench.restart()
    bench.run(1000)
  }
  for (let crash = 0; crash < 6; crash += 1) {
    bench.restart()
    bench.run(6 * MINUTE)
  }
  expect(bench.entries('alarm').filter(({ code }) => code === 'hub_restarting')).toEqual([])
})

test('a certificate that ends within 14 days raises an alarm until it is renewed', () => {
  const bench = TestHub.ready()
  const now = bench.core.cloudNow()
  bench.certificates = [
    { name: 'MQTT_CA', endsAt: now + 400 * DAY },
    { name: 'broker', endsAt: now + 15 * DAY },
  ]
  bench.run(2 * MINUTE)
  expect(alarmsOf(bench, 'certificate_expiring')).toEqual([])
  bench.certificates[1] = { name: 'broker', endsAt: now + 13 * DAY }
  bench.run(2 * MINUTE)
  expect(alarmsOf(bench, 'certificate_expiring')).toMatchObject([{ subject: 'certificate broker' }])
  // The broker's certificate is unknown before the hub has reached the broker again.
  bench.restart()
  expect(alarmsOf(bench, 'certificate_expiring')).toHaveLength(1)
  bench.certificates[1] = { name: 'broker', endsAt: now + 100 * DAY }
  bench.run(2 * MINUTE)
  expect(alarmsOf(bench, 'certificate_expiring')).toEqual([])
})

test('the last error is stored in a file that the next start reads once, and an unusable file is ignored', () => {
  const folder = files.mkdtempSync(join(tmpdir(), 'larder-words-'))
  const words = lastErrorFile(join(folder, 'hub.sqlite.last-error'), files)
  expect(words.take()).toBeUndefined()
  words.keep(new Error('x'.repeat(5000)))
  expect(words.take()).toHaveLength(1000)
  expect(words.take()).toBeUndefined()
  lastErrorFile(join(folder, 'missing', 'file'), files).keep('nobody hears it')
  files.rmSync(folder, { recursive: true })
})
