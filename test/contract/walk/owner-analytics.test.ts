import { ownerAnalyticsCases } from './owner-analytics-cases.ts'
import { walk } from './walk.ts'

walk('the owner interface: analytics', ownerAnalyticsCases)
