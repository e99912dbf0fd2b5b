import { ownerCases } from './owner-cases.ts'
import { walk } from './walk.ts'

walk('the owner interface', ownerCases)
