/** Why a bin takes no order until a person acts. */
export type BinObstacle = 'ready' | 'left_behind' | 'open' | 'disabled' | 'fault' | 'offline'

export interface TakenBin {
  bin: number
  reason: BinObstacle
  /** Number of the order whose goods are in the bin. */
  orderId: number | null
}

const texts: Record<BinObstacle, string> = {
  ready: 'is not collected',
  left_behind: 'something was left in it',
  open: 'is open',
  disabled: 'is disabled',
  fault: 'has a fault',
  offline: 'is offline',
}

/** The bins of a hub that cannot take an order, each with its reason. The hub and the cloud show the same text. */
export const takenBinsText = (bins: readonly TakenBin[]): string => bins.map(sentenceOf).join('; ')

function sentenceOf({ bin, reason, orderId }: TakenBin): string {
  if (orderId === null) return `bin ${bin}: ${texts[reason]}`
  switch (reason) {
    case 'ready':
      return `bin ${bin}: order ${orderId} is not collected`
    case 'left_behind':
      return `bin ${bin}: goods of order ${orderId} were left in it`
    case 'open':
    case 'disabled':
    case 'fault':
    case 'offline':
      return `bin ${bin}: order ${orderId} is in it, and the bin ${texts[reason]}`
  }
}
