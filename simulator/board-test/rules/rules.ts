import { memoryRules } from './memory-rules.ts'
import { operationRules } from './operation-rules.ts'
import type { Rule } from './rule.ts'
import { sensorRules } from './sensor-rules.ts'
import { sessionRules } from './session-rules.ts'

/** Every rule in the order of the serial SPEC §11, which is the order of the tests. */
export const rules: readonly Rule[] = [...sessionRules, ...operationRules, ...memoryRules, ...sensorRules]
