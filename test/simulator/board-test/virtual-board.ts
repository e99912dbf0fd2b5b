import { HardwareDescription } from '../../../protocol/model/hardware.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { Bench } from '../../../simulator/board-test/bench.ts'
import { rules, proveRules, type Finding } from '../../../simulator/board-test/run.ts'
import { makeImage } from '../../../simulator/firmware/image.ts'
import { seededRandom } from '../../../simulator/faults/faults.ts'
import { SimulatedHub } from '../../../simulator/simulated-hub.ts'
import { memoryStorage } from '../../world/memory-storage.ts'
import { virtualClock, virtualRuntime } from '../../world/clock.ts'

/** A hub with one controller that has one device of each kind. */
const hardware = HardwareDescription.parse({
  hubId: 7,
  controllers: [
    {
      id: 'all',
      port: 'ports/all',
      devices: [
        { kind: 'bin', number: 1 },
        { kind: 'bin', number: 2 },
        { kind: 'cabinet', number: 1, shelves: [{ shelf: 1, rows: 6, depth: 10 }] },
        { kind: 'fridge', number: 1 },
      ],
    },
  ],
  gpio: { chipLabel: 'larder-sim', lines: [] },
})

/**
 * Checks the rules on a built-in firmware in virtual time. `numbers`: only these rules. `lateMs`: the host reads each
 * line so much later.
 */
export async function proveOn(
  Hub: typeof SimulatedHub,
  numbers: readonly number[] = rules.map(({ number }) => number),
  lateMs = 0,
): Promise<Finding[]> {
  const clock = virtualClock()
  const hub = new Hub({
    hardware,
    runtime: virtualRuntime(1, clock),
    storage: memoryStorage(),
    log: silentLog,
  })
  const bench = new Bench({
    openPort: (port, handlers) =>
      hub.openPort(port, {
        ...handlers,
        onLine: (line) => void clock.after(lateMs, () => handlers.onLine(line)),
      }),
    path: 'all',
    baudRate: 115_200,
    runtime: { clock: clock, random: seededRandom(2) },
    description: hardware.controllers[0]!,
    hubId: hardware.hubId,
    image: makeImage({ build: 2 }, 'a program of three blocks '.repeat(30)),
    power: {
      prepare: async () => {},
      off: async () => hub.power('off', 'all'),
      on: async () => hub.power('on', 'all'),
      close() {},
    },
  })
  const wanted = rules.filter(({ number }) => numbers.includes(number))
  return clock.settle(proveRules(bench, wanted, () => {}))
}

/** Findings in the form that tests compare: `12 broken: …`. */
export const told = (findings: readonly Finding[]): string[] =>
  findings
    .filter(({ state }) => state !== 'holds')
    .map(({ rule, state, because }) => `${rule.number} ${state}: ${because}`)
