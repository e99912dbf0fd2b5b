import { walk } from './walk.ts'

walk('owner-analytics')
