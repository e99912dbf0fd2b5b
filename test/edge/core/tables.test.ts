import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { binStep, type BinView, hindrance } from '../../../edge/core/bins/bin.ts'
import type { BinAction } from '../../../edge/core/step.ts'
import { chooseFacing, type Attempt, type FacingView } from '../../../edge/core/orders/order-view.ts'
import { handshakes, judge, resolve } from '../../../edge/core/operations/reconciliation.ts'
import type { OrderPhase } from '../../../edge/journal/tables.ts'
import { actions, operationStates } from '../../../protocol/serial/frames.ts'
import { uuid } from '../../support/uuid.ts'

const flag = fc.boolean()
const phases = [
  undefined,
  'queued',
  'recovering',
  'preparing',
  'ready',
  'collecting',
  'completed',
  'cancelled',
  'timed_out',
  'failed',
  'unclaimed',
] as const satisfies (OrderPhase | undefined)[]

const bin: fc.Arbitrary<BinView> = fc
  .record({
    attended: fc.boolean(),
    enabled: flag,
    up: flag,
    door: fc.constantFrom('closed', 'open', 'moving', 'unknown'),
    lift: fc.constantFrom('up', 'down', 'moving', 'unknown'),
    unsureMs: fc.integer({ min: -1500, max: 500 }),
    occupied: fc.option(flag, { nil: undefined }),
    emptyMs: fc.integer({ min: 0, max: 10_000 }),
    moving: flag,
    receiving: flag,
    phase: fc.constantFrom(...phases),
    opened: flag,
    failures: fc.integer({ min: 0, max: 6 }),
    onTrial: flag,
    part: fc.constantFrom('raise_lift', 'close_door'),
    restMs: fc.constantFrom(0, 500),
    filled: fc.integer({ min: 0, max: 2 }),
  })
  .map(({ emptyMs, part, ...rest }) => ({
    ...rest,
    number: 1,
    capacity: 4,
    emptyForMs: rest.occupied === false ? emptyMs : undefined,
    provenEmptyInMs: rest.occupied === false ? Math.max(0, 5000 - emptyMs) : undefined,
    orderId: rest.phase === undefined ? null : uuid(5),
    fault: rest.failures > 0 ? `${part}:jam` : null,
    isFaulty: rest.failures >= 3,
    taken: rest.filled,
    reported: { door: rest.door, occupied: rest.occupied },
    settlesMs: undefined,
  }))

/**
 * The meaning of each state of an operation, for a dispense and for a motion: [moved, drops, same memory] →
 * verdict.
 */
const dispenseTable = {
  running: () => 'open',
  done: (_: boolean, drops: number) => (drops > 0 ? 'done' : 'unknown'),
  failed: (moved: boolean, drops: number) => (drops > 0 ? 'done' : moved ? 'unknown' : 'nothing'),
  interrupted: (moved: boolean, drops: number) => (drops > 0 ? 'done' : moved ? 'unknown' : 'nothing'),
  forgotten: (_: boolean, drops: number) => (drops > 0 ? 'done' : 'unknown'),
  none: (_moved: boolean, _drops: number, same: boolean) => (same ? 'nothing' : 'unknown'),
} as const

test('every outcome of a dispense has its documented verdict', () => {
  for (const state of operationStates)
    for (const moved of [false, true])
      for (const drops of [0, 1, 2])
        for (const same of [false, true])
          expect(judge('dispense', { state, moved, drops }, same), `${state} ${moved} ${drops} ${same}`).toBe(
            dispenseTable[state](moved, drops, same),
          )
})

test('an operation counts as not happened only with a proof: moved=0, or “none” of the same memory', () => {
  for (const action of actions)
    for (const state of operationStates)
      for (const moved of [false, true])
        for (const drops of [0, 1])
          for (const same of [false, true])
            if (judge(action, { state, moved, drops }, same) === 'nothing')
              expect((state === 'none' && same) || (action === 'dispense' && !moved)).toBe(true)
})

test('no command moves a silent, busy or filling bin, and a lift moves only with a closed door', () => {
  fc.assert(
    fc.property(
      bin,
      fc.constantFrom<BinAction>('open_door', 'close_door', 'raise_lift', 'lower_lift'),
      (view, action) => {
        const isLift = action === 'raise_lift' || action === 'lower_lift'
        const isWaiting = view.phase === 'ready' || view.phase === 'collecting'
        const expected = !view.up
          ? 'offline'
          : view.moving ||
              view.receiving ||
              view.phase === 'preparing' ||
              (isLift && view.door !== 'closed') ||
              (!isLift && view.lift === 'moving') ||
              (action === 'lower_lift' && isWaiting)
            ? 'interlock'
            : undefined
        expect(hindrance(action, view)).toBe(expected)
      },
    ),
    { numRuns: 2000 },
  )
})

const times = { closeAfterEmptyMs: 3000, emptyDebounceMs: 500, binTries: 5 }

test('automatic motions of a bin keep the interlocks, and open only for a ready order or to test an empty bin', () => {
  fc.assert(
    fc.property(bin, flag, (view, openWhenReady) => {
      const step = binStep(view, openWhenReady, times)
      if (step.kind === 'move') {
        expect(view.up && !view.moving && !view.receiving && view.restMs === 0).toBe(true)
        if (step.action === 'lower_lift' || step.action === 'raise_lift') expect(view.door).toBe('closed')
        if (step.action === 'open_door')
          expect(
            (openWhenReady && !view.opened && ['ready', 'collecting'].includes(view.phase ?? '')) ||
              (step.isTrial && view.orderId === null && view.occupied === false && view.failures < 5),
          ).toBe(true)
        // A door closes automatically only over an empty bin.
        if (step.action === 'close_door') expect(view.occupied).toBe(false)
        expect(view.phase).not.toBe('preparing')
      }
      if (step.kind === 'release') {
        expect(view.occupied).toBe(false)
        expect(view.door).toBe('closed')
        expect(view.filled === 0 || view.opened).toBe(true)
      }
    }),
    { numRuns: 5000 },
  )
})

const facing = (index: number): fc.Arbitrary<FacingView> =>
  fc.record({
    location: fc.constant({ cabinet: (index % 3) + 1, shelf: 1, row: index + 1 }),
    primary: fc.constant(index === 0),
    quantity: fc.integer({ min: 0, max: 3 }),
    blocked: flag,
    failing: flag,
    trialMs: fc.constantFrom(-1, 5000),
    up: flag,
    busy: flag,
    restMs: fc.constantFrom(0, 700),
  })
const facings: fc.Arbitrary<FacingView[]> = fc
  .integer({ min: 0, max: 4 })
  .chain((count) => fc.tuple(...Array.from({ length: count }, (_, index) => facing(index))))

test('a unit is dispensed from a facing with stock, without an unknown outcome, and with less than two failures for it', () => {
  fc.assert(
    fc.property(
      facings,
      fc.array(fc.record({ at: fc.nat(3), kind: fc.constantFrom<Attempt['kind']>('nothing', 'refused') }), {
        maxLength: 6,
      }),
      (views, tried) => {
        const attempts = tried.flatMap(({ at, kind }): Attempt[] =>
          views[at] ? [{ location: views[at].location, kind }] : [],
        )
        const choice = chooseFacing(views, attempts, { unitRefusals: 5 })
        const tries = attempts.filter((attempt) => attempt.kind === 'nothing')
        if (choice.kind !== 'dispense') return
        const chosen = views.find((view) => view.location === choice.location)!
        expect(chosen).toMatchObject({ blocked: false, up: true, busy: false, restMs: 0 })
        expect(chosen.quantity).toBeGreaterThan(0)
        const here = tries.filter((attempt) => attempt.location === chosen.location).length
        expect(here === 0 || (here === 1 && tries.length === 1)).toBe(true)
      },
    ),
    { numRuns: 5000 },
  )
})

test('a unit ends: after a limited number of proven failures it is short', () => {
  fc.assert(
    fc.property(facings, (views) => {
      const attempts: Attempt[] = []
      const ready = views.map((view) => ({ ...view, up: true, busy: false, restMs: 0 }))
      for (let round = 0; round < 50; round++) {
        const choice = chooseFacing(ready, attempts, { unitRefusals: 5 })
        if (choice.kind === 'short') return
        if (choice.kind === 'dispense')
          attempts.push({ location: choice.location, kind: round % 2 ? 'nothing' : 'refused' })
      }
      expect.unreachable('it was tried for ever')
    }),
  )
})

const standings = ['new', 'unreconciled', 'reconciled'] as const
const newest = ['none', 'known', 'foreign'] as const

test('only a board of this hub proves that the journal is a copy or new', () => {
  for (const standing of standings) {
    expect(handshakes.own[standing].none).toBe('agree')
    expect(handshakes.own[standing].known).toBe('agree')
    expect(handshakes.own[standing].foreign).toBe(standing === 'unreconciled' ? 'import' : 'start_over')
    for (const operation of newest) {
      expect(handshakes.nobodys[standing][operation]).toBe(standing === 'new' ? 'take_over' : 'refuse')
      expect(handshakes.moved[standing][operation]).toBe(handshakes.nobodys[standing][operation])
      expect(handshakes.emptied[standing][operation]).toBe('take_over')
      expect(handshakes.foreign[standing][operation]).toBe('refuse')
    }
  }
})

test('a new store takes over a board of a former store, and never one if it had its own board on this line', () => {
  for (const operation of newest) {
    for (const standing of ['new', 'unreconciled'] as const)
      expect(handshakes.former[standing][operation]).toBe(operation === 'foreign' ? 'import' : 'agree')
    expect(handshakes.former.reconciled[operation]).toBe('take_over')
  }
})

const operationPhases = ['open', 'done', 'failed', 'nothing', 'unknown', 'settled'] as const
const verdicts = ['open', 'done', 'failed', 'nothing', 'unknown'] as const

test('a result by a count or a person is final, and only open units can be retried or become unconfirmed', () => {
  for (const action of actions)
    for (const state of operationPhases)
      for (const verdict of verdicts) {
        const resolution = resolve(action, state, verdict)
        if (state === 'settled') expect(resolution).toBe('ignore')
        if (verdict === 'open') expect(resolution).toBe('ignore')
        if (state !== 'open') expect(['free', 'doubt', 'end']).not.toContain(resolution)
        if (state !== 'unknown') expect(resolution).not.toBe('settle')
      }
})

test('a unit with a sensed drop is booked in any state, unless a count or a person has resolved it', () => {
  for (const state of operationPhases)
    expect(resolve('dispense', state, 'done')).toBe(state === 'settled' ? 'ignore' : 'book')
})
