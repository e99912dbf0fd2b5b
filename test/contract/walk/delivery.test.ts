import { walk } from './walk.ts'

walk('delivery')
