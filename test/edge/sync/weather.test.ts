import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { seededChance } from '../../simulation/chance.ts'
import { Crash, effectsIn } from './hub-life.ts'
import { calm } from './line.ts'
import { setUp } from './set-up.ts'
import { uuid } from '../../support/uuid.ts'

type Act =
  | { type: 'report' | 'enqueue' | 'cut' | 'kill' | 'silence' }
  | { type: 'crash at'; point: string }
  | { type: 'wait'; ms: number }

const points = [
  'journal.before-commit',
  'journal.after-commit',
  'sync.before-ack',
  'sync.after-ack',
  'sync.before-send',
  'sync.after-send',
  'sync.after-hello',
]
const act: fc.Arbitrary<Act> = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Act>({ type: 'report' }) },
  { weight: 6, arbitrary: fc.constant<Act>({ type: 'enqueue' }) },
  { weight: 6, arbitrary: fc.integer({ min: 1, max: 8000 }).map((ms): Act => ({ type: 'wait', ms })) },
  { weight: 1, arbitrary: fc.constant<Act>({ type: 'cut' }) },
  { weight: 1, arbitrary: fc.constant<Act>({ type: 'kill' }) },
  { weight: 1, arbitrary: fc.constant<Act>({ type: 'silence' }) },
  { weight: 2, arbitrary: fc.constantFrom(...points).map((point): Act => ({ type: 'crash at', point })) },
)

test('I3, I4: both streams arrive complete, in order and once under any faults of the line and crashes', () => {
  const crashes: Record<string, number> = {}
  let exact = 0
  fc.assert(
    fc.property(fc.integer(), fc.array(act, { maxLength: 60, size: 'max' }), (seed, schedule) => {
      const chance = seededChance(seed)
      const { clock, line, cloud, db, start, details } = setUp()
      line.weather = {
        copies: () => (chance.happens(0.15) ? 0 : chance.happens(0.15) ? 2 : 1),
        delayMs: () => (chance.happens(0.2) ? chance.between(1, 3000) : 1),
      }
      let hub = start()
      const reported: string[] = []
      const told: number[] = []
      /** Runs work of the hub, and restarts the hub after a crash. */
      const guarded = (work: () => void): void => {
        try {
          work()
        } catch (error) {
          if (!(error instanceof Crash)) throw error
          crashes[error.message] = (crashes[error.message] ?? 0) + 1
          hub = start()
        }
      }
      for (const [step, act] of schedule.entries())
        switch (act.type) {
          case 'report':
            guarded(() => hub.report(`${step}`))
            // A report that crashed before its commit was never made.
            if (hub.outbox.position('ledger').last > reported.length) reported.push(`${step}`)
            break
          case 'enqueue':
            told.push(100 + step)
            cloud.enqueue({ kind: 'order.cancel', order_id: uuid(100 + step) })
            break
          case 'wait':
            guarded(() => clock.advance(act.ms))
            break
          case 'cut':
            guarded(() => line.cut())
            break
          case 'kill':
            hub.kill()
            hub = start()
            break
          case 'silence':
            cloud.answersHello = cloud.answersBatches = !cloud.answersHello
            break
          case 'crash at':
            hub.gate.crashAt = act.point
            break
        }
      line.weather = calm
      cloud.answersHello = cloud.answersBatches = true
      hub.gate.crashAt = undefined
      clock.advance(300_000)
      expect(details()).toEqual(reported)
      // A late hello of an earlier session causes a new epoch of the cloud. The epoch repeats known entries,
      // which are idempotent.
      const effects = effectsIn(db)
      expect(cloud.epochs === 1 ? effects : [...new Set(effects)]).toEqual(told)
      exact += cloud.epochs === 1 ? 1 : 0
      expect(cloud.unsent).toBe(0)
      expect(hub.outbox.position('ledger')).toMatchObject({ base: reported.length, last: reported.length })
    }),
    { numRuns: 150 },
  )
  expect(exact).toBeGreaterThan(75)
  for (const point of points) expect(crashes[point], point).toBeGreaterThan(0)
})
