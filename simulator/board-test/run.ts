import type { Bench } from './bench.ts'
import { Broken, Unasked } from './host.ts'
import type { Rule } from './rules/rule.ts'

/** What came of one rule. */
export interface Finding {
  rule: Rule
  state: 'holds' | 'broken' | 'not asked'
  /** What was expected and seen, or why it could not be asked. */
  because?: string
  ms: number
}

/** Asks every rule, one after the other; a rule that is broken keeps none from being asked. */
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
