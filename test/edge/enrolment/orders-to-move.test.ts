import { existsSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { enrolmentFiles } from '../../../edge/enrolment/enrolment.ts'
import { DAY_MS } from '../../../protocol/model/times.ts'
import { upTopic } from '../../../protocol/mqtt/topics.ts'
import { next } from './support/moving-board.ts'
import { connection, moved, to, waits } from './support/ordered-hub.ts'

test('an enrolment that failed is reported again for the same order, without another question to the next cell; the next order asks it again', async () => {
  const hub = connection([
    () => Promise.reject(new Error('the cloud refused the enrolment')),
    () => Promise.resolve(),
  ])
  for (const count of [1, 2, 3]) {
    hub.move(to)
    await expect.poll(() => hub.told).toHaveLength(count)
  }
  const failed = moved('the cloud refused the enrolment')
  expect([hub.told, hub.asked]).toEqual([[failed, failed, failed], [to]])
  hub.move({ ...to, order: 6 })
  await expect.poll(() => hub.told).toHaveLength(4)
  expect(hub.told[3]).toEqual([upTopic(1, 'moved'), { order: 6, hub_id: to.hub_id }])
  expect([hub.asked.length, hub.restarts(), hub.isEnrolled()]).toEqual([2, 0, true])
})

test('a hub that must stay does not ask the next cell, and stays if the reason appears during the enrolment', async () => {
  let enrolled = (): void => {}
  const hub = connection([
    () => new Promise<void>((resolve) => (enrolled = resolve)),
    () => Promise.resolve(),
  ])
  hub.mustStay('bin 2 is open')
  hub.move(to)
  await expect.poll(() => hub.told).toEqual([moved('bin 2 is open')])
  expect(hub.asked).toEqual([])
  hub.mustStay(undefined)
  hub.move(to)
  // The cloud repeats its order while the first one is under way.
  hub.move(to)
  await expect.poll(() => hub.asked).toEqual([to])
  hub.mustStay('order 7 is in progress')
  enrolled()
  await expect.poll(() => hub.told).toHaveLength(2)
  expect(hub.told[1]).toEqual(moved('order 7 is in progress'))
  hub.mustStay(undefined)
  hub.move(to)
  await expect.poll(() => hub.told).toHaveLength(3)
  expect([hub.told[2], hub.restarts(), hub.isEnrolled()]).toEqual([moved(), 0, true])
})

test('only the order to leave for the cell in which the board is enrolled begins the move; its enrolment here stays until then', async () => {
  const hub = connection()
  hub.erase({ next: 100_000_001 })
  await expect.poll(() => hub.restarts()).toBe(1)
  expect([hub.told, hub.isEnrolled(), hub.files()]).toEqual([[], true, [true, true]])
})

test('a board that leaves obeys a repeated order to leave again, and a revocation before its restart erases its keys of both cells', async () => {
  const hub = connection()
  for (const count of [1, 2]) {
    hub.erase({ next: 100_000_001 })
    await expect.poll(() => hub.restarts()).toBe(count)
  }
  hub.erase({})
  await expect.poll(() => hub.restarts()).toBe(3)
  expect([hub.isEnrolled(), hub.files()]).toEqual([false, [false, false]])
})

test('a board with a damaged enrolment in the other cell stays, and its log names the file', async () => {
  const hub = connection()
  writeFileSync(enrolmentFiles(hub.store).next, '{"order":5')
  hub.erase({ next: 100_000_001 })
  await expect.poll(() => hub.errors).toHaveLength(1)
  expect([hub.restarts(), hub.isEnrolled()]).toEqual([0, true])
  expect(JSON.stringify(hub.details)).toContain('enrolment.next.json is damaged')
})

test('a retired board erases its secrets at once and does not move, whatever its state is', async () => {
  const hub = connection()
  hub.mustStay('bin 2 is open')
  hub.erase({})
  await expect.poll(() => hub.restarts()).toBe(1)
  expect([hub.told, hub.isEnrolled(), hub.files()]).toEqual([
    [[upTopic(1, 'erased'), {}]],
    false,
    [false, false],
  ])
})

test('a board that is not enrolled in the other cell with the ordered number keeps its enrolment', async () => {
  const hub = connection()
  hub.erase({ next: 100_000_002 })
  await Promise.resolve()
  expect([hub.told, hub.restarts(), hub.isEnrolled(), hub.files()]).toEqual([
    [waits('it is not enrolled in the other cell as hub 100000002', 100_000_002)],
    0,
    true,
    [true, false],
  ])
})

test('a hub that must stay reports the reason to the cloud and to its page, and does not obey the order to leave until the reason has ended', async () => {
  const hub = connection()
  hub.mustStay('bin 2 is open')
  hub.erase({ next: 100_000_001 })
  await Promise.resolve()
  expect([hub.told, hub.shown(), hub.restarts(), hub.isEnrolled(), hub.files()]).toEqual([
    [waits('bin 2 is open')],
    'bin 2 is open',
    0,
    true,
    [true, false],
  ])
  hub.mustStay(undefined)
  hub.erase({ next: 100_000_001 })
  await expect.poll(() => hub.restarts()).toBe(1)
  expect([hub.told.length, hub.files()]).toEqual([1, [true, true]])
})

test('a board does not leave for a cell where less than a third of the lifetime of its certificate is left; a reason to wait comes first', async () => {
  const hub = connection()
  const expired = expect.stringContaining('its certificate of the other cell has expired') as string
  const due = Date.parse(next.answer.expires_at) - 30 * DAY_MS
  hub.setTime(due + 1)
  hub.mustStay('fridge 1 is not proven to be cold')
  hub.erase({ next: to.hub_id })
  expect(hub.shown()).toBe('fridge 1 is not proven to be cold')
  hub.mustStay(undefined)
  hub.erase({ next: to.hub_id })
  expect([hub.restarts(), hub.isEnrolled(), hub.files(), hub.shown()]).toEqual([
    0,
    true,
    [true, false],
    expired,
  ])
  hub.setTime(due)
  hub.erase({ next: to.hub_id })
  await expect.poll(() => hub.restarts()).toBe(1)
})

test('a board that needs another claim code reports why the last one was refused, until an enrolment succeeds', async () => {
  const hub = connection([() => Promise.reject(new Error('the code is wrong')), () => Promise.resolve()])
  hub.setTime(Date.parse(next.answer.expires_at))
  hub.move(to)
  await expect.poll(() => hub.told).toEqual([moved('the code is wrong')])
  hub.erase({ next: to.hub_id })
  expect(hub.shown()).toMatch(/has expired.* another claim code.* failed: the code is wrong/)
  hub.erase({ next: 100_000_002 })
  expect(hub.shown()).toMatch(/not enrolled .* as hub 100000002 .*: the code is wrong/)
  hub.move({ ...to, order: 6 })
  await expect.poll(() => hub.told.length).toBe(4)
  expect(hub.shown()).toBeUndefined()
  hub.erase({ next: to.hub_id })
  expect(hub.shown()).not.toContain('the code is wrong')
})

test('a board does not leave while it enrols again, because its earlier certificate may be revoked, and does not enrol again while it leaves', async () => {
  let enrolled = (): void => {}
  const hub = connection([() => new Promise<void>((resolve) => (enrolled = resolve))])
  hub.move(to)
  await expect.poll(() => hub.asked).toEqual([to])
  hub.erase({ next: to.hub_id })
  expect([hub.restarts(), hub.moving(), hub.told]).toEqual([
    0,
    undefined,
    [waits('it enrols in the other cell')],
  ])
  enrolled()
  await expect.poll(() => hub.told.length).toBe(2)
  hub.erase({ next: to.hub_id })
  await expect.poll(() => hub.restarts()).toBe(1)
  hub.move({ ...to, order: 6 })
  await Promise.resolve()
  expect(hub.asked).toEqual([to])
})

test('a board does not leave with an earlier enrolment while the answer of the other cell to another code is unknown', async () => {
  const hub = connection()
  const attempt = { code: 'AAAAAAAA', key: 'a key', csr: 'a request', id: 'an id' }
  writeFileSync(enrolmentFiles(hub.store).attempt, JSON.stringify(attempt))
  hub.erase({ next: to.hub_id })
  expect([hub.restarts(), hub.shown()]).toEqual([0, expect.stringContaining('it is not known')])
  writeFileSync(enrolmentFiles(hub.store).attempt, JSON.stringify({ ...attempt, code: next.code }))
  hub.erase({ next: to.hub_id })
  await expect.poll(() => hub.restarts()).toBe(1)
})

test('the order to leave removes the journal of an earlier move, so that no log of it is read with the new one', async () => {
  const hub = connection()
  const former = ['', '-wal', '-shm'].map((suffix) => `${hub.store}.former${suffix}`)
  for (const path of former) writeFileSync(path, 'of an earlier move')
  hub.erase({ next: 100_000_001 })
  await expect.poll(() => hub.restarts()).toBe(1)
  expect(former.map(existsSync)).toEqual([false, false, false])
})

test('a hub ignores an order to move that a later order has replaced', async () => {
  const hub = connection([() => Promise.resolve(), () => Promise.resolve()])
  hub.move({ ...to, order: 6 })
  await expect.poll(() => hub.told).toHaveLength(1)
  hub.move(to)
  await Promise.resolve()
  hub.move({ ...to, order: 7 })
  await expect.poll(() => hub.told).toHaveLength(2)
  expect(hub.asked).toEqual([6, 7].map((order) => ({ ...to, order })))
})

test('an answer that the connection does not take ends nothing, and the next order is answered', async () => {
  const hub = connection([() => Promise.resolve(), () => Promise.resolve()])
  const unanswered = 'an order to move to another cell is not answered'
  hub.breakLine()
  for (const count of [1, 2]) {
    hub.move(to)
    await expect.poll(() => hub.errors).toEqual(Array.from({ length: count }, () => unanswered))
  }
  expect(hub.asked).toEqual([to, to])
})

test('a damaged order changes nothing', async () => {
  const hub = connection()
  for (const damaged of ['text', { next: {} }]) hub.erase(damaged)
  for (const damaged of [{}, { ...to, cloud: 'file:///etc/passwd' }, { ...to, code: '' }]) hub.move(damaged)
  await Promise.resolve()
  expect([hub.told, hub.asked, hub.restarts(), hub.isEnrolled()]).toEqual([[], [], 0, true])
})
