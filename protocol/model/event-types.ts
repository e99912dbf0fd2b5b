/** What happens to an owner's hubs, orders and stock, as integrators are told of it. */
export const eventTypes = [
  'order.paid',
  'order.ready',
  'order.collecting',
  'order.completed',
  'order.failed',
  'order.timed_out',
  'order.cancelled',
  'order.refunded',
  'payment.disputed',
  'hub.online',
  'hub.offline',
  'bin.status_changed',
  'fridge.status_changed',
  'intake.changed',
  'inventory.low_stock',
  'inventory.out_of_stock',
  'inventory.counted',
  'deal.redeemed',
  'maintenance.report_created',
  'alarm.raised',
  'alarm.cleared',
  'alarm.acknowledged',
] as const
export type EventType = (typeof eventTypes)[number]

/** A webhook's own test: sent to that webhook, whatever types it asked for, and in no list of events. */
export const TEST_EVENT = 'webhook.test'
