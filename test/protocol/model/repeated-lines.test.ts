import { expect, test } from 'vitest'
import type { Log } from '../../../protocol/model/log.ts'
import { quietly, RepeatedLine } from '../../../protocol/model/repeated-lines.ts'
import { virtualClock } from '../../world/clock.ts'

interface Line {
  level: keyof Log
  message: string
  fields: Record<string, unknown>
}

function written() {
  const lines: Line[] = []
  const at = (level: keyof Log) => (fields: object, message: string) =>
    void lines.push({ level, message, fields: { ...fields } })
  const log: Log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  return { log, lines, clock: virtualClock() }
}

test('a quiet log writes the first of 3,000 equal errors at once and the last one with their number after a minute', () => {
  const { log, lines, clock } = written()
  const quiet = quietly(log, clock)
  for (let call = 0; call < 3000; call += 1)
    quiet.error(
      { requestId: `req_${call}`, path: `/orders/${call}`, reason: `refused 127.0.0.1:${call}` },
      'the database is away',
    )
  expect(lines).toHaveLength(1)
  clock.advance(60_000)
  expect(lines).toHaveLength(2)
  expect(lines[1]).toMatchObject({
    level: 'error',
    message: 'the database is away',
    fields: { path: '/orders/2999', repeated: 2999 },
  })
  clock.advance(600_000)
  expect([lines.length, clock.pending]).toEqual([2, 0])
})

test('a quiet log writes lines that differ in level, message, reason or subject', () => {
  const { log, lines, clock } = written()
  const quiet = quietly(log, clock)
  quiet.warn({ err: new Error('first') }, 'failed')
  quiet.warn({ err: new Error('second') }, 'failed')
  quiet.error({ err: new Error('second') }, 'failed')
  quiet.warn({ err: new Error('second'), hubId: 2 }, 'failed')
  quiet.warn({ hubId: 1, kind: 'fridge_warm' }, 'alarm')
  quiet.warn({ hubId: 1, kind: 'store_full' }, 'alarm')
  quiet.info({}, 'the same')
  quiet.info({}, 'the same')
  expect(lines).toHaveLength(8)
})

test('a quiet log holds a bounded number of different lines', () => {
  const { log, lines, clock } = written()
  const quiet = quietly(log, clock, 10)
  for (let call = 0; call < 1000; call += 1) quiet.warn({ name: `stranger ${call}` }, 'a stranger')
  quiet.flush()
  expect(lines.length).toBeLessThanOrEqual(12)
  expect(lines.at(-1)!.fields).toMatchObject({ name: 'stranger 999' })
})

test('a retry loop writes one warning for each reason, a count each hour, and a line when it succeeds', () => {
  const { log, lines, clock } = written()
  const line = new RepeatedLine({ log, clock })
  const warnings = (): Line[] => lines.filter(({ level }) => level === 'warn')
  for (let attempt = 0; attempt < 100; attempt += 1) {
    line.failed('no such file', { delayMs: attempt }, 'the port cannot be opened')
    clock.advance(10_000)
  }
  expect(warnings()).toHaveLength(1)
  expect(line.failing).toMatchObject({ reason: 'no such file', count: 100 })
  clock.advance(60 * 60_000)
  line.failed('no such file', {}, 'the port cannot be opened')
  expect(warnings()[1]!.fields).toMatchObject({ reason: 'no such file', count: 101 })
  line.failed('access denied', {}, 'the port cannot be opened')
  expect(warnings()[2]!.fields).toMatchObject({ reason: 'access denied' })
  line.succeeded({}, 'the port is open')
  expect(lines.at(-1)).toMatchObject({ level: 'info', message: 'the port is open', fields: { count: 1 } })
  expect(line.failing).toBeUndefined()
  line.succeeded({}, 'the port is open')
  expect(lines.at(-1)!.fields['count']).toBe(1)
})
