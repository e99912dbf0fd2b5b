import { walk } from './walk.ts'

walk('alarms')
