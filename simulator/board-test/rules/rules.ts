import { memoryRules } from './memory-rules.ts'
import { operationRules } from './operation-rules.ts'
import type { Rule } from './rule.ts'
import { sessionRules } from './session-rules.ts'
import { deviceId } from '../../../protocol/model/hardware.ts'
import { expect } from '../host.ts'

const REPEAT_MS = 60_000
/** Under load a line delivers slightly later. */
const MARGIN_MS = 3000

const sensorRules: readonly Rule[] = [
  {
    number: 28,
    title: 'a fridge reports its temperature, or that it has no reading, at least once a minute',
    async prove(bench) {
      const { host } = bench
      bench.device('fridge')
      await bench.fresh()
      const from = host.heard.length
      await host.pass(REPEAT_MS + MARGIN_MS)
      const reports = host.of('EVT', from).filter(({ temp }) => temp !== undefined)
      const silent = bench
        .devices('fridge')
        .map(deviceId)
        .filter((dev) => !reports.some((event) => event.dev === dev))
      expect(
        silent.length === 0,
        `a fridge must report its temperature, or temp=none, at least once a minute, also when nothing changes; ${silent.join(', ')} did not`,
      )
    },
  },
]

/** Every rule in the order of the serial SPEC §11, which is the order of the tests. */
export const rules: readonly Rule[] = [...sessionRules, ...operationRules, ...memoryRules, ...sensorRules]
