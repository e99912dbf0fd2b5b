import { expect, test } from 'vitest'
import { readFileSync, writeFileSync } from 'node:fs'
import type { Next } from '../../../edge/enrolment/install.ts'
import { board, next } from './support/moving-board.ts'
import { connection, to, waits } from './support/ordered-hub.ts'

const retired = 'the other cell does not take this hub: the broker refuses this user name or password'
const order = { next: to.hub_id }

/** A hub with an open question to the next cell. `answer` answers it. */
function asking(...given: Parameters<typeof connection>) {
  const hub = connection(...given)
  let answer: (reason?: string) => void = () => {}
  hub.answersBy(() => new Promise((resolve) => (answer = resolve)))
  hub.erase(order)
  expect(hub.questions).toHaveLength(1)
  return { ...hub, answer: (reason?: string) => answer(reason) }
}

test.each([retired, 'the other cell does not take this hub: it is revoked', 'the broker does not answer'])(
  'a hub stays while the next cell does not take it (%s), reports the reason to the cloud and its page, asks again after a minute, and then leaves',
  async (reason) => {
    const hub = connection()
    hub.answersBy(() => Promise.resolve(reason))
    // The cloud repeats its order.
    for (let count = 1; count <= 20; count += 1) {
      hub.erase(order)
      await expect.poll(() => hub.told).toHaveLength(count)
      expect([hub.told.at(-1), hub.shown(), hub.questions.length]).toEqual([waits(reason), reason, 1])
      hub.runtime.clock.advance(2_999)
    }
    expect([hub.restarts(), hub.isEnrolled(), hub.files()]).toEqual([0, true, [true, false]])
    hub.answersBy(() => Promise.resolve(undefined))
    hub.runtime.clock.advance(60_000 - 20 * 2_999)
    hub.erase(order)
    await expect.poll(() => hub.restarts()).toBe(1)
    expect([hub.questions.length, hub.told.length, hub.files()]).toEqual([2, 20, [true, true]])
  },
)

test('the next cell is not asked while the hub knows a reason to wait, and a reason that appears during the question keeps the hub', async () => {
  const hub = connection()
  hub.mustStay('bin 2 is open')
  hub.erase(order)
  expect([hub.told, hub.questions]).toEqual([[waits('bin 2 is open')], []])
  hub.mustStay(undefined)
  const other = asking()
  other.mustStay('bin 2 is open')
  other.answer()
  await expect.poll(() => other.told).toEqual([waits('bin 2 is open')])
  expect([other.restarts(), other.files()]).toEqual([0, [true, false]])
})

test('an order that is repeated during the question asks only once, and a hub that waits for the answer does not enrol there again', async () => {
  const hub = asking([() => Promise.resolve()])
  hub.erase(order)
  hub.move({ ...to, order: 6 })
  await Promise.resolve()
  expect([hub.questions.length, hub.asked, hub.told]).toEqual([1, [], []])
  hub.answer()
  await expect.poll(() => hub.restarts()).toBe(1)
  expect([hub.questions.length, hub.told]).toEqual([1, []])
})

test('a board that leaves asks no more, whatever the next cell would answer', async () => {
  const hub = connection()
  hub.erase(order)
  await expect.poll(() => hub.restarts()).toBe(1)
  hub.answersBy(() => Promise.resolve(retired))
  hub.erase(order)
  await expect.poll(() => hub.restarts()).toBe(2)
  expect([hub.questions.length, hub.told]).toEqual([1, []])
})

test('a power failure during the question changes nothing: the board starts in its former cell, and the next order asks again', async () => {
  const files = board({ isOrdered: false })
  const before = files.state()
  asking([], files)
  files.complete()
  expect(files.state()).toEqual(before)
  const hub = connection([], files)
  hub.erase(order)
  await expect.poll(() => hub.restarts()).toBe(1)
  files.complete()
  expect(files.state()).toMatchObject({ hub: to.hub_id, key: next.key, moving: undefined })
})

test('a board that is revoked during the question erases its secrets, and does not leave', async () => {
  const hub = asking()
  hub.erase({})
  await expect.poll(() => hub.restarts()).toBe(1)
  hub.answer()
  await expect.poll(() => hub.told.length).toBe(2)
  expect([hub.restarts(), hub.isEnrolled(), hub.files()]).toEqual([1, false, [false, false]])
})

test('a refusal does not count for a later enrolment in the next cell', async () => {
  const again = (path: string) => () => {
    const { answer, ...rest } = JSON.parse(readFileSync(path, 'utf8')) as Next
    writeFileSync(path, JSON.stringify({ ...rest, answer: { ...answer, hub_id: 100_000_002 } }))
    return Promise.resolve()
  }
  const files = board({ isOrdered: false })
  const hub = connection([again(files.paths.next)], files)
  hub.answersBy(() => Promise.resolve(retired))
  hub.erase(order)
  await expect.poll(() => hub.shown()).toBe(retired)
  hub.move({ ...to, order: 6, hub_id: 100_000_002 })
  await expect.poll(() => hub.shown()).toBeUndefined()
  hub.answersBy(() => Promise.resolve(undefined))
  hub.erase({ next: 100_000_002 })
  await expect.poll(() => hub.restarts()).toBe(1)
})
