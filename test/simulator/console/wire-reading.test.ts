import { expect, test } from 'vitest'
import { labelRoom, newest, runsIn, since } from '../../../simulator/console/page/wire-reading.ts'
import type { WireEntry } from '../../../simulator/wire-entry.ts'

const frame = (n: number, at_ms: number, type: 'CMD' | 'PING' = 'CMD'): WireEntry => ({
  n,
  at_ms,
  kind: 'frame',
  controller: 'bins',
  direction: 'to_hub',
  line: `~${n}`,
  type,
})
const motion = (n: number, at_ms: number, phase: 'began' | 'ended', id: string): WireEntry => ({
  n,
  at_ms,
  kind: 'motion',
  device: 'bin-1',
  action: 'open_door',
  phase,
  operation_id: id,
  detail: {},
})

test('the wire list has the newest entries first, up to its limit, also with a filter', () => {
  const entries = Array.from({ length: 5000 }, (_, n) => frame(n, n * 10, n % 2 === 0 ? 'PING' : 'CMD'))
  const shown = newest(entries, { text: '', lane: '', withChatter: false }, 3)
  expect(shown.map(({ n }) => n)).toEqual([4999, 4997, 4995])
  expect(newest(entries, { text: 'nothing like it', lane: '', withChatter: true }, 3)).toEqual([])
})

test.each([
  [0, 5],
  [15, 3],
  [20, 3],
  [41, 0],
])('entries since %i ms are those from that time on', (at, count) => {
  const entries = [0, 10, 20, 30, 40].map((at_ms, n) => frame(n, at_ms))
  expect(since(entries, at)).toHaveLength(count)
  expect(since([], at)).toEqual([])
})

test('the label of a run ends before the next run of its device', () => {
  const runs = runsIn([
    motion(1, 0, 'began', 'a'),
    motion(2, 10, 'ended', 'a'),
    motion(3, 60, 'began', 'b'),
    motion(4, 90, 'ended', 'b'),
  ])
  const x = (at: number): number => at * 2
  expect(runs.map((run) => labelRoom(runs, run, x, 500))).toEqual([112, 372])
})
