import { walk } from './walk.ts'

walk('money')
