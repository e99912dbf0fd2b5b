import type { CloudContext } from '../platform/context.ts'
import type { Commands } from '../gateway/commands.ts'
import type { CardProcessor } from './processors/processor.ts'

/** What handling money needs beside the store. */
export interface MoneyServices {
  context: CloudContext
  processor: CardProcessor
}

/** What orders need: a hub that has taken one must be asked before it is cancelled. */
export interface CommerceServices extends MoneyServices {
  commands: Commands
}
