import { expect, test } from 'vitest'
import { silentLog } from '../../../protocol/model/log.ts'
import { Refusals } from '../../../protocol/model/refusals.ts'
import { virtualClock } from '../../world/clock.ts'

function counted() {
  const lines: Record<string, unknown>[] = []
  const clock = virtualClock()
  const log = { ...silentLog, warn: (fields: object) => void lines.push(fields as Record<string, unknown>) }
  return { refusals: new Refusals(['login', 'topic'], { log, clock }), clock, lines }
}

test('the first refusal of a caller is logged at once, later ones once a minute with their count', () => {
  const { refusals, clock, lines } = counted()
  for (let attempt = 0; attempt < 500; attempt += 1) refusals.note('login', '192.0.2.1', { user: 'hub-1' })
  refusals.note('topic', 'hub-2')
  expect(lines).toEqual([
    { refused: 'login', caller: '192.0.2.1', user: 'hub-1', count: 1 },
    { refused: 'topic', caller: 'hub-2', count: 1 },
  ])
  clock.advance(60_000)
  expect(lines.slice(2)).toEqual([{ refused: 'login', caller: '192.0.2.1', user: 'hub-1', count: 499 }])
  refusals.note('login', '192.0.2.1', { user: 'hub-3' })
  expect(lines).toHaveLength(3)
  clock.advance(60_000)
  expect(lines.at(-1)).toMatchObject({ user: 'hub-3', count: 1 })
  clock.advance(600_000)
  expect([lines.length, clock.pending]).toEqual([4, 0])
  expect(refusals.totals).toEqual({ login: 501, topic: 1 })
})

test('an unauthenticated caller with many addresses and long names cannot fill the log', () => {
  const { refusals, clock, lines } = counted()
  for (let address = 0; address < 10_000; address += 1)
    refusals.note('login', `address-${address}`, { user: 'x'.repeat(60_000) })
  clock.advance(60_000)
  const bytes = lines.reduce((sum, line) => sum + JSON.stringify(line).length, 0)
  expect([lines.length, bytes < 5000]).toEqual([22, true])
  expect(lines.at(-1)).toMatchObject({ caller: 'others', count: 9979, user: `${'x'.repeat(64)}…` })
})
