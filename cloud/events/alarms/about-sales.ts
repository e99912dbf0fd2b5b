import type { AlarmKindName } from '../../../protocol/model/alarms.ts'

/**
 * Alarms about sales belong to the owner at the sale, because the hub may have another owner by now or be retired. Hubs
 * cannot raise them.
 */
export const aboutSales = [
  'order_overdue',
  'payment_stuck',
  'refund_failed',
  'payment_disputed',
  'payment_orphaned',
] as const satisfies readonly AlarmKindName[]

/** A kind of alarm that is about a hub itself, and belongs to the hub's present owner. */
export type AboutHub = Exclude<AlarmKindName, (typeof aboutSales)[number]>

export const isAboutSale = (kind: AlarmKindName): boolean => aboutSales.some((each) => each === kind)

/** An alarm about a sale at a hub names its owner. */
export type WithOwner = { ownerId: number } | { kind: AboutHub } | { soldBy: number }
