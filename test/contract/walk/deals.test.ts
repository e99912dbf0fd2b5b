import { walk } from './walk.ts'

walk('deals')
