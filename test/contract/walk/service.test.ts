import { walk } from './walk.ts'

walk('service')
