import { walk } from './walk.ts'

walk('reports')
