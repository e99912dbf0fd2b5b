import { z } from 'zod'
import { eventTypes, type EventType } from '../model/event-types.ts'
import { Order } from './consumer-orders.ts'
import { Redemption } from './deals.ts'
import { valuesIn } from '../model/named-enum.ts'
import { Id, HubId } from './fields.ts'
import { Alarm } from './owner-alarms.ts'
import { HubHealthReport, HubStatus } from './owner-hubs.ts'
import { OwnerProduct } from './owner-inventory.ts'
import { MaintenanceReport } from './owner-maintenance.ts'

const Product = OwnerProduct.extend({ hub_id: HubId }).meta({
  id: 'EventProduct',
  description: 'A product of the inventory with its hub.',
})

/** When each type of event happens. */
export const eventMeanings: Readonly<Record<EventType, string>> = {
  'order.paid': 'an order was paid.',
  'order.ready': 'the goods of an order are in the bins.',
  'order.collecting': 'a bin was opened for the customer.',
  'order.completed': 'the customer has collected an order.',
  'order.failed': 'the hardware failed, or the order was not collected.',
  'order.timed_out': 'an order was not prepared before its deadline.',
  'order.cancelled': 'an order was cancelled.',
  'order.refunded': 'money of an order was refunded.',
  'payment.disputed': 'a customer’s bank disputes a payment.',
  'hub.online': 'a hub is connected.',
  'hub.offline': 'a hub is not connected any more.',
  'bin.status_changed': 'the status of a bin has changed.',
  'fridge.status_changed': 'the status of a fridge has changed.',
  'intake.changed': 'a hub started or stopped taking orders.',
  'inventory.low_stock': 'few units of a product are left.',
  'inventory.out_of_stock': 'no unit of a product is left.',
  'inventory.counted': 'a person counted a product.',
  'deal.redeemed': 'a deal was redeemed.',
  'maintenance.report_created': 'a maintenance report was filed.',
  'alarm.raised': 'an alarm was raised.',
  'alarm.cleared': 'an alarm ended.',
  'alarm.acknowledged': 'a person acknowledged an alarm.',
}

/** A type of event, as callers choose it. */
export const EventTypeName = z
  .enum(eventTypes)
  .meta({ id: 'EventType', description: valuesIn('Type of event.', eventMeanings) })

/** The schema of `data` for each type of event. */
export const eventData: Record<EventType, z.ZodType<object>> = {
  'order.paid': Order,
  'order.ready': Order,
  'order.collecting': Order,
  'order.completed': Order,
  'order.failed': Order,
  'order.timed_out': Order,
  'order.cancelled': Order,
  'order.refunded': Order,
  'payment.disputed': Order,
  'hub.online': HubHealthReport,
  'hub.offline': HubHealthReport,
  'bin.status_changed': HubHealthReport.shape.bins.element,
  'fridge.status_changed': HubHealthReport.shape.fridges.element,
  'intake.changed': z
    .object({
      accepting_orders: z.boolean().describe('True if the hub takes new orders now.'),
      hub_status: HubStatus,
    })
    .meta({ id: 'Intake', description: 'Intake of orders at a hub.' }),
  'inventory.low_stock': Product,
  'inventory.out_of_stock': Product,
  'inventory.counted': Product,
  'deal.redeemed': Redemption.extend({ deal_id: Id.describe('Number of the deal.') }).meta({
    id: 'EventRedemption',
    description: 'A redemption with its deal.',
  }),
  'maintenance.report_created': MaintenanceReport,
  'alarm.raised': Alarm,
  'alarm.cleared': Alarm,
  'alarm.acknowledged': Alarm,
}
