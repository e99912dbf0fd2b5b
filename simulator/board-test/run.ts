import type { Bench } from './bench.ts'
import { Broken, Unasked } from './host.ts'
import type { Rule } from './rules/rule.ts'

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
