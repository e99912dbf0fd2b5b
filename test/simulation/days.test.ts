import { expect, test } from 'vitest'
import { runDays } from './days.ts'

/** The columns that the same seed repeats: all but the bytes and the memory of this process. */
const repeated = (lines: readonly string[]): string[] =>
  lines.map((line) => (/^ *\d+ /.test(line) ? line.trim().split(/ +/).slice(0, 12).join(' ') : line))

test('a fleet lives a simulated day under every rule, and the same seed repeats the day', async () => {
  const play = async () => {
    const lines: string[] = []
    const print = (line: string): void => void lines.push(line)
    const problems = await runDays({ days: 1, seed: 7, hubs: 2, ordersPerDay: 4, print })
    return { problems, lines: repeated(lines) }
  }
  const first = await play()
  expect(first.problems).toEqual([])
  expect(first.lines.join('\n')).toMatch(/completed; hubs: .*succeeded/)
  expect(await play()).toEqual(first)
}, 600_000)
