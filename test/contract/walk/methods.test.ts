import { walk } from './walk.ts'

walk('methods')
