import type { CloudContext } from '../platform/context.ts'
import type { Commands } from '../gateway/commands.ts'
import type { CardProcessor } from './processors/processor.ts'

/** Dependencies of money operations. */
export interface MoneyServices {
  context: CloudContext
  processor: CardProcessor
}

/** Dependencies of orders: a hub that has taken an order must be asked before it is cancelled. */
export interface CommerceServices extends MoneyServices {
  commands: Commands
}
