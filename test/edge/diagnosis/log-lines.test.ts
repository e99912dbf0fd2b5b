import { expect, test } from 'vitest'
import { LogLines } from '../../../edge/diagnosis/log-lines.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { virtualRuntime } from '../../world/clock.ts'

/** A file system in memory. */
function disk(): { texts: Map<string, string>; files: ConstructorParameters<typeof LogLines>[2] } {
  const texts = new Map<string, string>()
  const readFileSync = (path: string): string => {
    if (!texts.has(path)) throw new Error('ENOENT')
    return texts.get(path)!
  }
  return { texts, files: { readFileSync, writeFileSync: (path, text) => void texts.set(path, text) } }
}

function open(files = disk().files) {
  const runtime = virtualRuntime()
  const lines = new LogLines('/log', runtime, files)
  const log = lines.log(silentLog)
  const messages = (wanted: Partial<Parameters<LogLines['read']>[0]> = {}): string[] =>
    lines
      .read({ sinceMs: Infinity, limit: 10_000, ...wanted })
      .lines.map((line) => (JSON.parse(line) as { message: string }).message)
  return { runtime, lines, log, messages }
}

test('the newest records within the wanted time are read, oldest first', () => {
  const { runtime, log, messages } = open()
  log.info({}, 'old')
  runtime.clock.advance(60_000)
  log.warn({ bin: 2 }, 'first')
  log.error({ error: new Error('jam') }, 'second')
  log.debug({}, 'never stored')
  expect(messages({ sinceMs: 30_000 })).toEqual(['first', 'second'])
  expect(messages({ limit: 2 })).toEqual(['first', 'second'])
  expect(messages()).toEqual(['old', 'first', 'second'])
})

test('a record is a line of JSON with its time, level, message and fields, and a field replaces none of them', () => {
  const { log, lines } = open()
  const circle: Record<string, unknown> = { level: 'x', bin: 2, error: new Error('jam') }
  log.error({ ...circle }, 'a motion failed')
  circle['self'] = circle
  log.warn(circle, 'fields without JSON')
  const [first, second] = lines
    .read({ sinceMs: 1000, limit: 2 })
    .lines.map((line) => JSON.parse(line) as object)
  expect(first).toMatchObject({ level: 'error', message: 'a motion failed', bin: 2, error: 'jam' })
  expect(second).toMatchObject({ level: 'warn', message: 'fields without JSON' })
})

test('a cursor continues after the newest record, whatever their age', () => {
  const { runtime, log, lines } = open()
  log.info({}, 'first')
  const { cursor } = lines.read({ sinceMs: 1000, limit: 10 })
  log.info({}, 'second')
  runtime.clock.advance(60_000)
  const next = lines.read({ sinceMs: 1000, limit: 10, after: cursor })
  expect(next.lines).toHaveLength(1)
  expect(lines.read({ sinceMs: 1000, limit: 10, after: next.cursor }).lines).toEqual([])
})

test('a cursor stays right while old records are dropped', () => {
  const { log, lines } = open()
  for (let n = 0; n < 12_000; n += 1) log.info({}, `record ${n}`)
  const { cursor } = lines.read({ sinceMs: 1000, limit: 1 })
  for (let n = 0; n < 1000; n += 1) log.info({}, `later ${n}`)
  expect(lines.read({ sinceMs: 1000, limit: 10_000, after: cursor }).lines).toHaveLength(1000)
})

test('an answer has at most 10,000 records and 1 MiB, the newest', () => {
  const { log, lines, messages } = open()
  for (let n = 0; n < 30_000; n += 1) log.info({}, `record ${n}`)
  expect(messages()).toHaveLength(10_000)
  expect(messages().at(-1)).toBe('record 29999')
  for (let n = 0; n < 400; n += 1) log.info({ text: 'ä'.repeat(4000) }, 'long')
  const text = lines.read({ sinceMs: Infinity, limit: 10_000 }).lines.join('\n')
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(1024 * 1024)
  expect(Buffer.byteLength(text)).toBeGreaterThan(1024 * 1024 - 10_000)
})

test('the newest records survive an orderly restart, and those within the wanted time are read', () => {
  const { files, texts } = disk()
  const before = open(files)
  before.log.info({}, 'last words')
  before.lines.keep()
  texts.set('/log', `torn\n${texts.get('/log')}`)
  const after = open(files)
  after.log.info({}, 'the hub runs')
  expect(after.messages({ sinceMs: 60_000 })).toEqual(['last words', 'the hub runs'])
  after.runtime.clock.advance(60_000)
  expect(after.messages({ sinceMs: 1000 })).toEqual([])
})
