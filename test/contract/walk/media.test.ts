import { mediaCases } from './media-cases.ts'
import { walk } from './walk.ts'

walk('maintenance, banners and files', mediaCases)
