import { walk } from './walk.ts'

walk('media')
