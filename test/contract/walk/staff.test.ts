import { walk } from './walk.ts'

walk('staff')
