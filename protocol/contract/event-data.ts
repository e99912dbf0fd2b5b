import { z } from 'zod'
import type { EventType } from '../model/event-types.ts'
import { Order } from './consumer-orders.ts'
import { Redemption } from './deals.ts'
import { Id } from './fields.ts'
import { Alarm } from './owner-alarms.ts'
import { HubHealthReport, HubStatus } from './owner-hubs.ts'
import { OwnerProduct } from './owner-inventory.ts'
import { MaintenanceReport } from './owner-maintenance.ts'

const Product = OwnerProduct.extend({ hub_id: Id }).meta({ id: 'EventProduct' })

/** What the `data` of each type of event is. */
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
  'intake.changed': z.object({ accepting_orders: z.boolean(), hub_status: HubStatus }).meta({ id: 'Intake' }),
  'inventory.low_stock': Product,
  'inventory.out_of_stock': Product,
  'inventory.counted': Product,
  'deal.redeemed': Redemption.extend({ deal_id: Id }).meta({ id: 'EventRedemption' }),
  'maintenance.report_created': MaintenanceReport,
  'alarm.raised': Alarm,
  'alarm.cleared': Alarm,
  'alarm.acknowledged': Alarm,
}
