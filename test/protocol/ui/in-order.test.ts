import { expect, test } from 'vitest'
import { inOrder } from '../../../protocol/ui/in-order.ts'

test('the answer of an earlier request does not replace the answer of a later one', async () => {
  const taken: string[] = []
  const load = inOrder<string>((answer) => void taken.push(answer))
  const requests = ['first', 'second', 'third'].map((answer) => {
    const { promise, resolve } = withResolver<string>()
    return { done: load(promise), answer: () => resolve(answer) }
  })
  for (const index of [1, 0, 2]) {
    requests[index]!.answer()
    await requests[index]!.done
  }
  expect(taken).toEqual(['second', 'third'])
})

test('a failed request is reported, and later answers are taken', async () => {
  const taken: string[] = []
  const load = inOrder<string>((answer) => void taken.push(answer))
  await expect(load(Promise.reject(new Error('away')))).rejects.toThrow('away')
  await load(Promise.resolve('there'))
  expect(taken).toEqual(['there'])
})

function withResolver<T>() {
  let resolve: (value: T) => void = () => {}
  const promise = new Promise<T>((done) => (resolve = done))
  return { promise, resolve }
}
