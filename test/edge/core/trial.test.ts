import { expect, test } from 'vitest'
import type { LocalOutcome } from '../../../edge/core/hub-core.ts'
import { locationKey } from '../../../protocol/model/location.ts'
import { uuid } from '../../support/uuid.ts'
import { TestHub } from '../../world/hub.ts'

const location = { cabinet: 1, shelf: 1, row: 3 }

const acts: [name: string, act: (bench: TestHub) => LocalOutcome][] = [
  ['a count', ({ core }) => core.count(location, 5)],
  ['a restock', ({ core }) => core.restock(location, 1)],
  ['a stop of orders', ({ core }) => core.hold('orders', true)],
  ['the unlocking of a door', ({ core }) => core.unlockDoor('main', 5000)],
  ['a confirmation of a fridge', ({ core }) => core.confirmFridge(1)],
  ['the result of an operation', ({ core }) => core.settle('an operation', true)],
  ['the use of a foreign board', ({ core }) => core.takeOverController('vending')],
  ['the repetition of dead letters', ({ core }) => core.replayDeadLetters()],
  ['the removal of a dead letter', ({ core }) => core.dropDeadLetter(1)],
  ['an acceptance', ({ core }) => core.acceptance.begin('Ada', null)],
  ['a step of an acceptance', ({ core }) => core.acceptance.beginSteps(['a step'])],
  ['a verdict of an acceptance', ({ core }) => core.acceptance.decide(['a step'], 'passed', '')],
  ['the end of an acceptance', ({ core }) => core.acceptance.end()],
]

/** Reports of more than states and alarms, which each version finds by itself. */
const acted = (bench: TestHub): string[] =>
  bench.kinds().filter((kind) => kind !== 'state' && kind !== 'alarm')

/** A hub that runs a new version, which the updater has not confirmed. */
function onTrial(): TestHub {
  const bench = TestHub.ready()
  bench.isOnTrial = true
  bench.restart()
  bench.run(60_000)
  return bench
}

test('a version on trial refuses each action of a person at the hub, without a trace in its journal', () => {
  const bench = onTrial()
  const before = [acted(bench), bench.stock()]
  const why = expect.stringContaining('on trial') as string
  for (const [name, act] of acts) expect(act(bench), name).toEqual({ ok: false, reason: 'unavailable', why })
  bench.run(10_000)
  expect([acted(bench), bench.stock()]).toEqual(before)
})

test('a version on trial refuses the commands of the cloud and of people, and moves nothing for an order', () => {
  const bench = onTrial()
  const [motions, entries] = [bench.motions().length, acted(bench)]
  const { results } = bench.command({ name: 'open_bin', bin: 1 })
  bench.core.operate({ name: 'open_bin', bin: 1 }, (result) => results.push(result))
  expect(results.map(({ outcome, reason }) => [outcome, reason])).toEqual([
    ['refused', 'fault'],
    ['refused', 'fault'],
  ])
  bench.queue(1, { 3: 1 })
  bench.run(60_000)
  expect([bench.motions().length, acted(bench), bench.phase(1)]).toEqual([motions, entries, 'queued'])
  bench.isOnTrial = false
  bench.core.noteDesired()
  expect(bench.runUntil(() => bench.phase(1) === 'ready')).toBe(true)
  expect(bench.core.count(location, 3)).toEqual({ ok: true })
})

test('a version on trial does not close the bin behind a customer', () => {
  const bench = TestHub.ready()
  bench.queue(1, { 3: 1 })
  bench.runUntil(() => bench.phase(1) === 'ready')
  bench.command({ name: 'open_delivery', order_id: uuid(1), bins: [1, 2] })
  bench.run(5000)
  bench.takeAll()
  bench.kill()
  const before = bench.motions().length
  bench.isOnTrial = true
  bench.begin()
  bench.run(120_000)
  expect(bench.motions().length).toBe(before)
  bench.isOnTrial = false
  bench.core.noteDesired()
  expect(bench.runUntil(() => bench.phase(1) === 'completed')).toBe(true)
  expect(bench.motions().at(-1)).toMatchObject({ action: 'close_door' })
})

test('a power failure during a trial leaves a hub that continues with either journal', () => {
  for (const returns of [false, true]) {
    const bench = TestHub.ready()
    bench.core.count(location, 5)
    bench.run(1000)
    bench.kill()
    const copy = bench.copy()
    bench.isOnTrial = true
    bench.begin()
    bench.run(60_000)
    bench.core.count(location, 1)
    bench.kill()
    bench.begin()
    bench.run(60_000)
    bench.kill()
    bench.isOnTrial = false
    if (returns) bench.restartOn(copy)
    else bench.begin()
    bench.run(60_000)
    expect(bench.stock()[locationKey(location)]).toBe(5)
    expect(bench.core.alarms().map(({ code }) => code)).not.toContain('journal_restored')
    bench.queue(1, { 3: 1 })
    expect(bench.runUntil(() => bench.phase(1) === 'ready')).toBe(true)
    expect(bench.stock()[locationKey(location)]).toBe(4)
  }
})
