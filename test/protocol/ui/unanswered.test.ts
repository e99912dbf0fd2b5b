import { expect, test } from 'vitest'
import type { Failure } from '../../../protocol/client/types.ts'
import { BrowserStorage } from '../../../protocol/ui/browser-storage.ts'
import { Unanswered } from '../../../protocol/ui/unanswered.ts'

type Answer = { ok: true } | { ok: false; error: Failure }
const done: Answer = { ok: true }
const failed = (status: number, code: string): Answer => ({ ok: false, error: { status, code, message: '' } })
const lost = failed(0, 'network_error')

/** A tab of a page with a service that gives one answer after the other. */
function tab(...answers: Answer[]) {
  const stored = new Map<string, string>()
  const storage = {
    getItem: (name: string) => stored.get(name) ?? null,
    setItem: (name: string, text: string) => void stored.set(name, text),
    removeItem: (name: string) => void stored.delete(name),
  }
  let count = 0
  const newKey = () => `key ${++count}`
  /** A press after a load of the page. Returns the key, and whether an earlier press has no outcome. */
  const press = async (about: unknown): Promise<string> => {
    let used = ''
    const { isRepeated } = await new Unanswered(storage, () => 0).send(about, newKey, (key) => {
      used = key
      return Promise.resolve(answers.length > 1 ? answers.shift()! : answers[0]!)
    })
    return `${used}${isRepeated ? ' again' : ''}`
  }
  return press
}

test('a refund that got no answer has the same key when the person presses again, until an answer comes', async () => {
  const press = tab(lost, failed(502, 'unreadable_answer'), done, done)
  const keys = [await press('refund'), await press('refund'), await press('refund'), await press('refund')]
  expect(keys).toEqual(['key 1', 'key 1 again', 'key 1 again', 'key 2'])
})

test.each([
  ['a session that has ended', failed(401, 'unauthorized'), 'key 1 again'],
  ['too many calls', failed(429, 'rate_limit_exceeded'), 'key 1 again'],
  ['a processor that does not answer', failed(503, 'processor_unavailable'), 'key 1 again'],
  ['a service that failed', failed(500, 'internal_error'), 'key 1 again'],
  ['a refusal', failed(409, 'already_refunded'), 'key 2'],
  ['a bin that the hub could not open', failed(502, 'hardware_error'), 'key 2'],
  ['a hub that did not report in time, which a person checks', failed(504, 'hardware_error'), 'key 2'],
])(
  'a request that had no answer, and then meets %s, has the right key at the next press',
  async (_, then, key) => {
    const press = tab(lost, then)
    await press('refund')
    await press('refund')
    expect(await press('refund')).toBe(key)
  },
)

test('calls with other contents have other keys, also while one has no answer', async () => {
  const press = tab(lost)
  const formOf = (name: string, size: number) => {
    const form = new FormData()
    form.append('name', name)
    form.append('file', new File(['x'.repeat(size)], 'a.png', { lastModified: 1 }))
    return { form }
  }
  const inputs = [{ body: { a: 1 } }, { body: { a: 2 } }, formOf('a', 1), formOf('b', 1), formOf('a', 2)]
  const first = await Promise.all(inputs.map(press))
  expect(new Set(first).size).toBe(5)
  expect(await Promise.all(inputs.map(press))).toEqual(first.map((key) => `${key} again`))
})

test('a lost answer is asked for again under the same key in a browser that stores nothing for the page', async () => {
  const storage = new BrowserStorage(() => {
    throw new Error('SecurityError')
  })
  const unanswered = new Unanswered(storage, () => 0)
  const used: string[] = []
  const press = (answer: Answer) =>
    unanswered.send(
      'refund',
      () => `key ${used.length + 1}`,
      (key) => {
        used.push(key)
        return Promise.resolve(answer)
      },
    )
  await press(lost)
  await press(done)
  await press(done)
  expect(used).toEqual(['key 1', 'key 1', 'key 3'])
})
