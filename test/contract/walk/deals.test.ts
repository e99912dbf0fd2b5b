import { dealCases } from './deal-cases.ts'
import { walk } from './walk.ts'

walk('the owner interface: deals', dealCases)
