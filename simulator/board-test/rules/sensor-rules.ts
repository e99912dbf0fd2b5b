import { deviceId } from '../../../protocol/model/hardware.ts'
import { expect } from '../host.ts'
import type { Rule } from './rule.ts'

const REPEAT_MS = 60_000
/** Under load a line delivers slightly later. */
const MARGIN_MS = 3000

export const sensorRules: readonly Rule[] = [
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
