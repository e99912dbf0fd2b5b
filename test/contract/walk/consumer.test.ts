import { walk } from './walk.ts'

walk('consumer')
