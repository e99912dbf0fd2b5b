import { walk } from './walk.ts'

walk('people')
