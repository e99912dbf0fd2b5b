import { walk } from './walk.ts'

walk('webhooks')
