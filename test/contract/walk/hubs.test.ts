import { walk } from './walk.ts'

walk('hubs')
