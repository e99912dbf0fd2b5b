import { expect, test } from 'vitest'
import { Cabinet } from '../../../simulator/physics/cabinet.ts'
import { openChronicle } from '../../../simulator/physics/chronicle.ts'
import { defaultTiming } from '../../../simulator/physics/motion.ts'
import { fullRows, type WorldRecord } from '../../../simulator/physics/world-state.ts'
import { memoryStorage } from '../../world/memory-storage.ts'
import { seededChance } from '../../simulation/chance.ts'
import { smallHub } from '../support/hardware.ts'

test('a unit that the sensor has seen has left its row, also if a delayed process receives instants out of order', () => {
  const timers = new Set<() => void>()
  const clock = {
    now: () => 0,
    monotonic: () => 0,
    after(_: number, run: () => void) {
      timers.add(run)
      return () => void timers.delete(run)
    },
  }
  const log = memoryStorage().open<WorldRecord>('world')
  const chronicle = openChronicle(log, smallHub, clock, () => fullRows(smallHub))
  const cabinet = new Cabinet({
    device: 'cabinet-1',
    number: 1,
    binOf: () => undefined,
    random: seededChance(1),
    chronicle,
    clock,
    timing: defaultTiming,
    strikes: () => false,
    onMotion: () => {},
  })
  let seen = 0
  cabinet.onDrop((units) => (seen += units))
  cabinet.turn({ shelf: 1, row: 1, bin: 1 }, 'operation', () => {})
  while (timers.size > 0)
    for (const run of [...timers].toReversed()) {
      timers.delete(run)
      run()
    }
  expect(seen).toBe(1)
  expect(chronicle.acts().map(({ detail }) => detail['fallen'])).toEqual([1])
})
