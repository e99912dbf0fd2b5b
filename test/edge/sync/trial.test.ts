import { expect, test } from 'vitest'
import { Sqlite } from '../../../edge/journal/sqlite-driver.ts'
import { uuid } from '../../support/uuid.ts'
import { effectsIn } from './hub-life.ts'
import { setUp } from './set-up.ts'

const cancelled = (number: number) => ({ kind: 'order.cancel', order_id: uuid(number) }) as const

/** A hub of the former version works, and stops for the switch with a report that the cloud has not confirmed. */
function switched() {
  const world = setUp()
  const { clock, cloud, db, start } = world
  const former = start()
  former.report('first')
  cloud.enqueue(cancelled(1))
  clock.advance(5000)
  cloud.answersBatches = false
  former.report('unconfirmed')
  clock.advance(1000)
  former.sync.stop()
  clock.advance(1000)
  cloud.answersBatches = true
  return { ...world, copy: new Sqlite(db.serialize()) }
}

test('a version on trial is welcomed and sends heartbeats, and neither stream moves before its trial has ended', () => {
  const { clock, cloud, db, startOn, details } = switched()
  const batches = cloud.batches.length
  const beats = cloud.heartbeats.length
  let isOnTrial = true
  const hub = startOn(db, () => isOnTrial)
  hub.report('on trial')
  cloud.enqueue(cancelled(2))
  clock.advance(200_000)
  expect(hub.sync.state().phase).toBe('welcomed')
  expect(cloud.heartbeats.length).toBeGreaterThan(beats)
  expect([cloud.batches.length, cloud.unsent, effectsIn(db)]).toEqual([batches, 1, [1]])
  isOnTrial = false
  hub.sync.sendHello()
  clock.advance(5000)
  expect(details()).toEqual(['first', 'unconfirmed', 'on trial'])
  expect([cloud.unsent, effectsIn(db), hub.restarts, cloud.epochs]).toEqual([0, [1, 2], [], 1])
})

test('the journal from before a trial continues both streams as after a restart', () => {
  const { clock, cloud, db, copy, startOn, details } = switched()
  const tried = startOn(db, () => true)
  tried.report('on trial')
  cloud.enqueue(cancelled(2))
  clock.advance(200_000)
  tried.kill()
  clock.advance(1000)
  const hub = startOn(copy)
  hub.report('returned')
  clock.advance(60_000)
  expect(details()).toEqual(['first', 'unconfirmed', 'returned'])
  expect([cloud.unsent, effectsIn(copy), hub.restarts, cloud.epochs]).toEqual([0, [1, 2], [], 1])
})
