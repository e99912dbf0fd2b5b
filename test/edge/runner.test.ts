import { expect, test } from 'vitest'
import { StorageError } from '../../edge/journal/storage-error.ts'
import { createRunner, type Running } from '../../edge/runner.ts'
import type { Waiting } from '../../edge/waiting.ts'
import type { Log } from '../../protocol/model/log.ts'
import type { Cancel } from '../../protocol/model/runtime.ts'
import type { StorageReason } from '../../protocol/model/storage.ts'
import { virtualRuntime } from '../world/clock.ts'

/** A hub on a card that works, or fails with a reason. */
function setUp(fails?: StorageReason) {
  const runtime = virtualRuntime()
  const card = { fails, refuses: undefined as string | undefined }
  const events: string[] = []
  const lines: string[] = []
  const at = (level: string) => (_: object, message: string) => void lines.push(`${level}: ${message}`)
  const log: Log = { debug: () => {}, info: at('info'), warn: at('warn'), error: at('error') }
  let lose: (error: StorageError) => void = () => {}
  let cancelTick: Cancel | undefined
  const runner = createRunner<Running>({
    runtime,
    log,
    path: '/data/hub.sqlite',
    retry: { firstMs: 1000, maxMs: 30_000 },
    open(life) {
      events.push('open')
      if (card.refuses !== undefined) throw new Error(card.refuses)
      if (card.fails !== undefined) throw new StorageError(card.fails, 'the card fails')
      const tick = (): void => {
        cancelTick = life.clock.after(700, tick)
        events.push('tick')
      }
      tick()
      return { onLost: (listener) => void (lose = listener), stop: () => void events.push('stop') }
    },
    wait(_, fault) {
      events.push(`wait: ${fault().reason}`)
      return {
        changed: () => void events.push(`wait: ${fault().reason}`),
        stop: () => void events.push('stop waiting'),
      } as Partial<Waiting> as Waiting
    },
    onChange: ({ kind }) => void events.push(kind),
    onRefused: (error) => void events.push(String(error)),
  })
  const take = (): string[] => events.splice(0)
  return {
    runtime,
    runner,
    card,
    take,
    lines,
    lose: (reason: StorageReason) => lose(new StorageError(reason, 'x')),
    cancelTick: () => cancelTick?.(),
  }
}

test('a hub with a working card runs, and opens nothing again', () => {
  const { runtime, runner, take, cancelTick } = setUp()
  runner.start()
  cancelTick()
  runtime.clock.advance(3_600_000)
  expect(take()).toEqual(['open', 'tick', 'running'])
  expect(runner.fault()).toBeUndefined()
})

test('a hub that starts on a failing card retries with growing pauses, and runs when the card works', () => {
  const { runtime, runner, card, take, lines } = setUp('read_only')
  runner.start()
  expect(take()).toEqual(['open', 'wait: read_only', 'waiting'])
  expect(runner.fault()).toEqual({
    reason: 'read_only',
    setting: 'STORE',
    path: '/data/hub.sqlite',
    detail: 'the card fails',
  })
  runtime.clock.advance(10_000)
  const early = take().length
  runtime.clock.advance(600_000)
  const tries = take()
  expect(new Set(tries)).toEqual(new Set(['open']))
  expect(early).toBeGreaterThan(2)
  expect(tries.length).toBeGreaterThan(19)
  expect(tries.length).toBeLessThan(45)
  expect(lines).toHaveLength(1)
  expect(lines[0]).toContain('STORE: /data/hub.sqlite is on a file system that is mounted read-only')
  card.fails = undefined
  runtime.clock.advance(30_000)
  expect(take().slice(0, 4)).toEqual(['open', 'tick', 'stop waiting', 'running'])
  expect(lines[1]).toContain('info: the storage works again')
})

test('a hub with a failing card ends with all its timers, and resumes when the card works again', () => {
  const { runtime, runner, card, take, lose } = setUp()
  runner.start()
  take()
  card.fails = 'io_error'
  lose('io_error')
  lose('io_error')
  expect(take()).toEqual([])
  runtime.clock.advance(0)
  expect(take()).toEqual(['stop', 'wait: io_error', 'waiting'])
  runtime.clock.advance(60_000)
  expect(take()).not.toContain('tick')
  card.fails = undefined
  runtime.clock.advance(30_000)
  expect(take()).toContain('running')
})

test('another reason of a failing card is reported once to open pages', () => {
  const { runtime, runner, card, take, lines } = setUp('io_error')
  runner.start()
  card.fails = 'read_only'
  runtime.clock.advance(120_000)
  expect(take().filter((event) => event !== 'open')).toEqual(['wait: io_error', 'waiting', 'wait: read_only'])
  expect(lines).toHaveLength(2)
})

test('a card that opens and fails at once is retried with growing pauses', () => {
  const { runtime, runner, take, lose, cancelTick } = setUp()
  runner.start()
  for (let time = 0; time < 600; time += 1) {
    cancelTick()
    if (runner.phase()?.kind === 'running') lose('read_only')
    runtime.clock.advance(1000)
  }
  expect(take().filter((event) => event === 'open').length).toBeLessThan(60)
})

test('a refused journal ends the start, and a journal refused after a failure ends the service', () => {
  const { runtime, runner, card, take } = setUp('io_error')
  runner.start()
  card.refuses = 'an older build made its tables'
  runtime.clock.advance(2000)
  expect(take()).toContain('Error: an older build made its tables')
  const other = setUp()
  other.card.refuses = 'in use'
  expect(() => other.runner.start()).toThrow('in use')
})

test('a hub that stops while it waits for its card opens nothing any more', () => {
  const { runtime, runner, take } = setUp('locked')
  runner.start()
  take()
  runner.stop()
  runtime.clock.advance(600_000)
  expect(take()).toEqual(['stop waiting'])
})
