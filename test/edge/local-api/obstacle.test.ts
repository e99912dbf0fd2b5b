import { expect, test } from 'vitest'
import type { LocalState } from '../../../edge/local-api/local-state.ts'
import { sellingObstacle } from '../../../edge/local-api/page/incidents.ts'

type Bin = LocalState['health']['bins'][number]

const bin = (bin_number: number, changes: Partial<Bin> = {}): Bin => ({
  bin_number,
  capacity: 10,
  enabled: true,
  status: 'healthy',
  door: 'closed',
  lift: 'down',
  occupied: false,
  fault_code: null,
  order_id: null,
  ...changes,
})
const order = (order_number: number, phase: string) => ({
  order_id: `o${order_number}`,
  order_number,
  phase,
  bins: [],
  lines: [],
})
const row = (quantity: number, blocked: string | null = null) => ({
  product_id: 1,
  name: null,
  upc: null,
  location: { cabinet: 1, shelf: 1, row: 1 },
  primary: true,
  quantity,
  capacity: 10,
  blocked,
})

function hub(changes: {
  bins?: Bin[]
  orders?: LocalState['orders']
  stock?: LocalState['stock']
  accepting?: boolean
  stoppedHere?: boolean
  waits?: string
}): LocalState {
  const { bins = [bin(1)], orders = [], stock = [row(3)], accepting = true, stoppedHere = false } = changes
  return {
    waits_to_leave: changes.waits ?? null,
    orders,
    stock,
    held: { orders: stoppedHere, bins: [] },
    health: { accepting_orders: accepting, bins, fridges: [], doors: [], unknown_operations: 0 },
  } as unknown as LocalState
}

const inBin = (number: number, order: number, changes: Partial<Bin> = {}): Bin =>
  bin(number, { occupied: true, order_id: `o${order}`, ...changes })

test('if all bins wait for a person, the page shows the text of the cloud’s alarm', () => {
  const bins = [
    inBin(1, 7),
    bin(2, { occupied: true }),
    bin(3, { enabled: false, status: 'maintenance' }),
    bin(4, { status: 'fault', fault_code: 'open_door:jam' }),
  ]
  expect(sellingObstacle(hub({ bins, orders: [order(7, 'ready')] }))).toMatchObject({
    code: 'no_bin_available',
    text: 'The hub has no free bin and sells nothing (bin 1: order 7 is not collected; bin 2: something was left in it; bin 3: is disabled; bin 4: has a fault).',
  })
})

test.each([
  { name: 'a free bin', state: hub({ bins: [inBin(1, 7), bin(2)], orders: [order(7, 'ready')] }) },
  { name: 'an order in progress', state: hub({ bins: [inBin(1, 7)], orders: [order(7, 'preparing')] }) },
  {
    name: 'a customer at the bin',
    state: hub({ bins: [inBin(1, 7, { door: 'open' })], orders: [order(7, 'collecting')] }),
  },
  { name: 'one row with a unit', state: hub({ stock: [row(0), row(1, 'no_drop'), row(1)] }) },
])('a hub with $name can sell', ({ state }) => {
  expect(sellingObstacle(state)).toBeNull()
})

test.each([
  {
    state: hub({ bins: [inBin(1, 7)], orders: [order(7, 'unclaimed')] }),
    text: /goods of order 7 were left/,
  },
  { state: hub({ bins: [bin(1, { occupied: null, status: 'offline' })] }), text: /bin 1: is offline/ },
  { state: hub({ accepting: false, waits: 'bin 2 is open' }), text: /cannot leave .*: bin 2 is open/ },
  { state: hub({ accepting: false, stoppedHere: true }), text: /takes no orders/ },
  { state: hub({ accepting: false }), text: /takes no orders/ },
  { state: hub({ stock: [row(0), row(2, 'no_drop')] }), text: /every row is empty or blocked/ },
])('a hub that cannot sell names the reason: $text', ({ state, text }) => {
  expect(sellingObstacle(state)?.text).toMatch(text)
})
