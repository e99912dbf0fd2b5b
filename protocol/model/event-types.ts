/** The events of an owner's hubs, orders and stock that integrators receive. */
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

/**
 * The test event of a webhook: sent only to that webhook, whatever types it subscribes to, and absent from the list of
 * events.
 */
export const TEST_EVENT = 'webhook.test'
