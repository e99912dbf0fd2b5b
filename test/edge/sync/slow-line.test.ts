import { expect, test } from 'vitest'
import { alarm } from './hub-life.ts'
import { setUp } from './set-up.ts'

const ENTRIES = 20_000
/** 1 Mbit/s, and 100 ms in one direction. */
const slow = { bytesPerMs: 125, delayMs: 100 }

test('a backlog on a slow line is sent once, at the rate of the line', () => {
  const { clock, line, cloud, start, details } = setUp()
  line.up = false
  const hub = start()
  for (let n = 0; n < ENTRIES; n += 1) hub.outbox.append('ledger', alarm(`${n}`.padEnd(150, '.')))
  const content = Buffer.byteLength(JSON.stringify(hub.outbox.read('ledger', 1, ENTRIES).entries))
  line.rate = slow
  line.up = true
  clock.advance(1000)
  line.sentBytes = 0
  const from = clock.monotonic()
  while (hub.outbox.position('ledger').base < ENTRIES && clock.monotonic() - from < 400_000)
    clock.advance(100)
  const tookMs = clock.monotonic() - from
  expect(details()).toHaveLength(ENTRIES)
  expect(line.sentBytes / content).toBeLessThan(1.1)
  expect(tookMs / (content / slow.bytesPerMs)).toBeLessThan(1.2)
  // The hub does not ask for the cloud's position either.
  expect(cloud.hellos.length).toBeLessThanOrEqual(2)
}, 60_000)
