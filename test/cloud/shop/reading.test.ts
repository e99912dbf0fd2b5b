import { expect, test } from 'vitest'
import { readPatiently } from '../../../cloud/shop/page/reading.ts'
import { LarderError } from '../../../protocol/client/client.ts'

/** A reading that fails with these statuses, and then succeeds. 0: no answer. */
function reading(statuses: readonly number[]) {
  const closed = new AbortController()
  const happened: string[] = []
  const left = [...statuses]
  const read = (): Promise<void> => {
    const status = left.shift()
    happened.push(`read ${status ?? 'well'}`)
    if (status === undefined) return Promise.resolve()
    return Promise.reject(new LarderError({ code: 'x', message: '', status }))
  }
  const options = {
    closed: closed.signal,
    report: () => void happened.push('report'),
    readSession: () => Promise.resolve(happened.push('session')),
    sleep: (ms: number) => Promise.resolve(void happened.push(`${ms} ms`)),
  }
  return { closed, happened, options, run: () => readPatiently(read, options) }
}

test('a reading that fails for a time is repeated, and its failure is shown once', async () => {
  const { run, happened } = reading([500, 0])
  expect(await run()).toBeUndefined()
  expect(happened).toEqual(['read 500', 'report', '3000 ms', 'read 0', '3000 ms', 'read well'])
})

test('a reading that is refused for lack of a session reads the session and is repeated', async () => {
  const { run, happened } = reading([401])
  expect(await run()).toBeUndefined()
  expect(happened).toEqual(['read 401', 'session', '3000 ms', 'read well'])
})

test.each([404, 409, 422])('a reading that is refused with %i is not repeated', async (status) => {
  const { run, happened } = reading([status])
  expect(await run()).toMatchObject({ status })
  expect(happened).toEqual([`read ${status}`])
})

test('a closed view ends its reading without a word', async () => {
  const { closed, happened, options } = reading([])
  const read = (): Promise<void> => {
    closed.abort()
    return Promise.reject(new LarderError({ code: 'aborted', message: '', status: 0 }))
  }
  expect(await readPatiently(read, options)).toBeUndefined()
  expect(happened).toEqual([])
})

test('an error of the page itself is thrown', async () => {
  const { options } = reading([])
  await expect(readPatiently(() => Promise.reject(new TypeError('bug')), options)).rejects.toThrow('bug')
})
