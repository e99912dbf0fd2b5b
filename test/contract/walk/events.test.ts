import { walk } from './walk.ts'

walk('events')
