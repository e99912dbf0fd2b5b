import { expect, test } from 'vitest'
import { runToEnd } from './chaos/run-to-end.ts'

const abuse = (who: string, seconds: number) =>
  runToEnd('test/process/abuse/main', ['--who', who, '--minutes', String(seconds / 60), '--pace', '500'])

test.each([
  ['a guest without money', 'guest'],
  ['a customer who wants products without paying', 'customer'],
] as const)(
  'the abuser %s gets no money and cannot occupy all bins, and honest customers get their products',
  async (_, who) => {
    const { status, text } = await abuse(who, 20)
    expect(text).toContain('money lost: 0 cents')
    expect(text).toMatch(/honest customers: (.*, )?COMPLETED \d/)
    expect(text).toContain('no violation')
    expect(status).toBe(0)
  },
  300_000,
)

test('a thief of the hub’s card with false reports takes no money', async () => {
  const { status, text } = await abuse('thief', 20)
  expect(text).toContain('money lost: 0 cents')
  expect(status, text).toBe(0)
}, 300_000)
