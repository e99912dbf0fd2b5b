import type { Bench, Rule } from './bench.ts'
import { Broken, Unasked, expect } from './host.ts'
import { firmwareRules } from './rules/firmware-rules.ts'
import { memoryRules } from './rules/memory-rules.ts'
import { operationRules } from './rules/operation-rules.ts'
import { sessionRules } from './rules/session-rules.ts'
import { deviceId } from '../../protocol/model/hardware.ts'

/** The result of one rule. */
export interface Finding {
  rule: Rule
  state: 'holds' | 'broken' | 'not asked'
  /** The expectation and the observation, or the reason why the rule could not be tested. */
  because?: string
  ms: number
}

/** Tests every rule, one after another, also after a broken one. */
export async function proveRules(
  bench: Bench,
  rules: readonly Rule[],
  onFinding: (finding: Finding) => void,
): Promise<Finding[]> {
  const findings: Finding[] = []
  for (const rule of rules) {
    const from = bench.host.now
    const finding: Finding = { rule, ...(await prove(bench, rule)), ms: Math.round(bench.host.now - from) }
    findings.push(finding)
    onFinding(finding)
  }
  bench.host.close()
  return findings
}

async function prove(bench: Bench, rule: Rule): Promise<Pick<Finding, 'state' | 'because'>> {
  try {
    if (rule.power && !bench.power)
      throw new Unasked('the power cannot be cut: neither --relay nor --operator is given')
    await rule.prove(bench)
    return { state: 'holds' }
  } catch (error) {
    if (error instanceof Unasked) return { state: 'not asked', because: error.message }
    if (error instanceof Broken) return { state: 'broken', because: error.message }
    throw error
  }
}

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
export const rules: readonly Rule[] = [
  ...sessionRules,
  ...operationRules,
  ...memoryRules,
  ...sensorRules,
  ...firmwareRules,
]
