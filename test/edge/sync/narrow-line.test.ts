import { describe, expect, test } from 'vitest'
import { alarm } from './hub-life.ts'
import { setUp } from './set-up.ts'

/**
 * A path that passes small packets and drops full-size ones. Packets behind a dropped one wait until the
 * connection ends.
 */
const NARROW = { bytes: 1400, deadMs: 45_000 }
const MINUTE = 60_000

/** A hub with a backlog of entries on a narrow line. */
function backlog(entries: number, line = NARROW) {
  const parts = setUp()
  parts.line.up = false
  const hub = parts.start()
  for (let n = 0; n < entries; n += 1) hub.outbox.append('ledger', alarm(`${n}`.padEnd(150, '.')))
  parts.clock.advance(1000)
  parts.line.narrow = line
  parts.line.up = true
  return { ...parts, hub }
}

describe('a path that drops large packets', () => {
  test('on a path that drops large packets the ledger is sent one entry at a time after two connections without an acknowledgement', () => {
    const { clock, line, hub, details } = backlog(300)
    clock.advance(4 * MINUTE)
    expect(hub.outbox.position('ledger').base).toBeGreaterThan(0)
    clock.advance(10 * MINUTE)
    expect(details()).toHaveLength(300)
    expect(hub.outbox.position('ledger')).toMatchObject({ base: 300, last: 300 })
    expect(hub.sync.isStalled()).toBe(false)
    // Two failed connections, one with too large batches, and few more.
    expect(line.connections).toBeLessThan(7)
  })

  test('a path that carries large packets again is used at full size', () => {
    const { clock, line, hub } = backlog(300)
    clock.advance(4 * MINUTE)
    line.narrow = undefined
    clock.advance(10 * MINUTE)
    expect(hub.outbox.position('ledger')).toMatchObject({ base: 300, last: 300 })
    const batches: number[] = []
    const deliver = line.onUp
    line.onUp = (topic, payload, retain) => {
      if (topic.endsWith('/entries'))
        batches.push((JSON.parse(payload) as { entries: unknown[] }).entries.length)
      deliver(topic, payload, retain)
    }
    for (let n = 0; n < 3000; n += 1) hub.outbox.append('ledger', alarm(`${n}`.padEnd(150, '.')))
    clock.advance(MINUTE)
    expect(hub.outbox.position('ledger').base).toBe(3300)
    expect(Math.max(...batches)).toBeGreaterThan(100)
  })

  test('a path that carries no entry stops the hub from taking orders until the ledger advances', () => {
    const { clock, line, hub } = backlog(3, { bytes: 100, deadMs: 45_000 })
    // Hellos and heartbeats pass, as on a real narrow path.
    line.passes = (topic) => !topic.endsWith('/entries')
    clock.advance(2 * MINUTE)
    expect(hub.sync.isStalled()).toBe(false)
    clock.advance(4 * MINUTE)
    expect(hub.sync.isStalled()).toBe(true)
    expect(hub.sync.state().reason).toMatch(
      /acknowledges nothing that the hub reports, so no orders are taken/,
    )
    line.narrow = undefined
    clock.advance(2 * MINUTE)
    expect(hub.sync.isStalled()).toBe(false)
    expect(hub.outbox.position('ledger')).toMatchObject({ base: 3, last: 3 })
  })

  test('the time without a connection does not count against the path', () => {
    const { clock, line, hub } = backlog(300, { bytes: 100, deadMs: 45_000 })
    line.up = false
    clock.advance(24 * 60 * MINUTE)
    expect(hub.sync.isStalled()).toBe(false)
    line.narrow = undefined
    line.up = true
    clock.advance(2 * MINUTE)
    expect(hub.outbox.position('ledger')).toMatchObject({ base: 300, last: 300 })
    expect(hub.sync.isStalled()).toBe(false)
  })
})
