import { hubCases } from './hub-cases.ts'
import { walk } from './walk.ts'

walk('hubs, inventory and controls', hubCases)
