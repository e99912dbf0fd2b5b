import { walk } from './walk.ts'

walk('diag')
