import { eventData } from '../../protocol/contract/event-data.ts'
import { alarmKinds, alarmMessage } from '../../protocol/model/alarms.ts'
import type { EventType } from '../../protocol/model/event-types.ts'
import { OrderStatus, orderStatusName } from '../../protocol/model/order-status.ts'
import { timestamp } from '../platform/calendar/days.ts'
import { exampleOf, schemaWriter } from '../platform/http/json-schema.ts'

type Fields = Record<string, unknown>

/**
 * Example data of an event type, in a state in which the event happens. Ids are negative, because no real order,
 * customer or product has a negative id. Only the hub is real.
 */
export function exampleOfEvent(type: EventType, { hubId, now }: { hubId: number; now: number }): Fields {
  const writer = schemaWriter()
  const shape = exampleOf(writer.write(eventData[type]), writer.components) as Fields
  const example = { ...shape, ...states[type]?.(shape, timestamp(now)) }
  return { ...(withNegativeIds(example) as Fields), ...('hub_id' in example && { hub_id: hubId }) }
}

const isIdName = (name: string): boolean => /^(id|.+_id|reserved_for_order)$/.test(name) && name !== 'hub_id'

function withNegativeIds(value: unknown, name = ''): unknown {
  if (Array.isArray(value)) return value.map((each) => withNegativeIds(each, name))
  if (typeof value === 'number') return isIdName(name) ? -Math.abs(value) : value
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, withNegativeIds(each, key)]))
}

const UNITS = 2
const PRICE = 250
const TAX = 41

interface OrderState {
  status: OrderStatus
  /** Status of the payment. */
  payment?: string
  /** Dispensed and refunded units. */
  dropped?: number
  refunded?: number
}

/** An order of two units, with totals that add up. */
const order =
  ({ status, payment = 'completed', dropped = 0, refunded = 0 }: OrderState) =>
  (shape: Fields, at: string): Fields => {
    const [item] = shape['items'] as Fields[]
    const isInBin = dropped > 0
    return {
      processing_status: status,
      processing_status_name: orderStatusName(status),
      payment_status: payment,
      items: [
        {
          ...item,
          name: 'Example product',
          qty: UNITS,
          unit_price_original: PRICE,
          price: PRICE,
          line_total: UNITS * PRICE,
          dropped: dropped === UNITS,
          qty_dropped: dropped,
          refunded_quantity: refunded,
          bin_number: isInBin ? 1 : null,
        },
      ],
      total_price_original: UNITS * PRICE,
      total_price_discounted: UNITS * PRICE,
      discount_total: 0,
      tax_total: TAX,
      total: UNITS * PRICE + TAX,
      deals: [],
      bins: isInBin ? [1] : [],
      queue_position: status === OrderStatus.QUEUED ? 1 : null,
      expires_at: status === OrderStatus.READY ? at : null,
      ready_at: isInBin ? at : null,
      created_at: at,
      updated_at: at,
    }
  }

const devicesOf = (shape: Fields, name: 'bins' | 'fridges', state: Fields): Fields[] =>
  (shape[name] as Fields[]).map((device) => ({ ...device, ...state }))

const NO_ORDER = { occupied: false, order_id: null, reserved_for_order: null }

const alarm = (fields: (at: string) => Fields) => (_shape: Fields, at: string) => ({
  id: 'alm_example',
  kind: 'bin_fault',
  severity: alarmKinds.bin_fault.severity,
  subject: 'bin 1',
  message: alarmMessage('bin_fault', 'bin 1', 'example'),
  remedy: alarmKinds.bin_fault.remedy,
  raised_at: at,
  details: {},
  cleared_at: null,
  acknowledged_at: null,
  acknowledged_by: null,
  ...fields(at),
})

/** The difference of each type from the description's example. */
const states: Partial<Record<EventType, (shape: Fields, at: string) => Fields>> = {
  'order.paid': order({ status: OrderStatus.QUEUED }),
  'order.ready': order({ status: OrderStatus.READY, dropped: UNITS }),
  'order.collecting': order({ status: OrderStatus.COLLECTING, dropped: UNITS }),
  'order.completed': order({ status: OrderStatus.COMPLETED, dropped: UNITS }),
  'order.failed': order({ status: OrderStatus.FAILED, payment: 'refunded', refunded: UNITS }),
  'order.timed_out': order({ status: OrderStatus.TIMED_OUT, payment: 'refunded', refunded: UNITS }),
  'order.cancelled': order({ status: OrderStatus.CANCELLED, payment: 'refunded', refunded: UNITS }),
  'order.refunded': order({
    status: OrderStatus.COMPLETED,
    dropped: UNITS,
    payment: 'partially_refunded',
    refunded: 1,
  }),
  'payment.disputed': order({ status: OrderStatus.COMPLETED, dropped: UNITS }),
  'hub.online': (shape, at) => ({
    last_heartbeat: at,
    bins: devicesOf(shape, 'bins', NO_ORDER),
  }),
  'hub.offline': (shape, at) => ({
    online: false,
    last_heartbeat: at,
    door_status: 'unknown',
    network_status: 'disconnected',
    bins: devicesOf(shape, 'bins', { ...NO_ORDER, status: 'offline' }),
    fridges: devicesOf(shape, 'fridges', { status: 'offline', temperature: null }),
  }),
  'bin.status_changed': () => ({ ...NO_ORDER, status: 'fault' }),
  'fridge.status_changed': () => ({ status: 'fault', temperature: 9.5 }),
  'intake.changed': () => ({ accepting_orders: false, hub_status: 'paused' }),
  'inventory.low_stock': () => ({ quantity: 2, sellable_quantity: 2 }),
  'inventory.out_of_stock': () => ({ quantity: 0, sellable_quantity: 0 }),
  'inventory.counted': () => ({ quantity: 8, sellable_quantity: 8 }),
  'deal.redeemed': (_shape, at) => ({ status: 'completed', redeemed_at: at }),
  'alarm.raised': alarm(() => ({})),
  'alarm.cleared': alarm((at) => ({ cleared_at: at })),
  'alarm.acknowledged': alarm((at) => ({ acknowledged_at: at, acknowledged_by: 'key:example' })),
}
