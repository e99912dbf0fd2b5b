import { diagCases } from './diag-cases.ts'
import { walk } from './walk.ts'

walk('diagnostics', diagCases)
